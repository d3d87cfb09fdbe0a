//! What becomes of packets that find their queue full.

use super::*;
use crate::config::TrimVictim;
use crate::wire::trim::TrimIpLength;

const ROOM_FOR_ONE: u64 = FULL_IP;

/// Fills the data queue at the port towards `destination`.
fn full(config: SwitchConfig, destination: Ipv4Addr) -> Bench {
    let mut bench = Bench::new(config);
    bench.arrive(Instant::ZERO, data(Role::NoTrim, destination));
    bench
}

/// The frame that left last, after another one of `role` met a full queue.
fn last_sent(config: SwitchConfig, destination: Ipv4Addr, role: Role) -> Frame {
    let mut bench = full(config, destination);
    bench.arrive(Instant::ZERO, data(role, destination));
    bench.run();
    assert_eq!(bench.sent.len(), 2);
    bench.sent.pop().unwrap().2
}

// case E12: 44 bytes of headers, all that a NACK needs.
// spec: SW-16, DSCP-1, DSCP-5, NACK-1
#[test]
fn a_trimmable_packet_that_finds_no_room_is_cut_to_its_headers() {
    for role in [Role::Trimmable, Role::TrimmableRtx] {
        for (destination, marked) in [(HOST, Role::TrimmedLastHop), (BEHIND_UP, Role::Trimmed)] {
            let frame = last_sent(config(ROOM_FOR_ONE), destination, role);
            assert_eq!(wire_bytes(frame.len()), 62);
            let packet = parse(&frame);
            assert_eq!(packet.role, Some(marked));
            assert_eq!(packet.body, Body::Trimmed { meth: Meth { rqmsn: 0, msn: 9 } });
            assert_eq!((packet.bth.psn, packet.entropy), (Psn::masked(7), 1_000));
            assert_eq!(packet.ecn, Ecn::Ect0);
            let view = FrameView::new(&frame).unwrap();
            assert_eq!(view.total_length(), 44);
            let udp = view.udp().unwrap();
            assert_eq!((udp.length(), udp.checksum()), (24, 0));
        }
    }
}

// spec: SW-16
#[test]
fn the_lengths_may_be_kept() {
    let mut config = config(ROOM_FOR_ONE);
    config.attributes.trim_ip_length = TrimIpLength::Keep;
    let frame = last_sent(config, HOST, Role::Trimmable);
    assert_eq!(wire_bytes(frame.len()), 62);
    assert_eq!(u64::from(FrameView::new(&frame).unwrap().total_length()), FULL_IP);
}

// spec: DSCP-5
#[test]
fn trimmed_packets_overtake_data_and_are_counted() {
    let mut bench = full(config(ROOM_FOR_ONE), HOST);
    bench.arrive(Instant::ZERO, data(Role::Trimmable, HOST));
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::TRIMMED), 46);
    assert_eq!(bench.events(), [Event::Trimmed { port: 0 }]);
    assert_eq!(bench.switch.counters(DOWN).trim, 1);
    assert_eq!(bench.switch.counters(DOWN).trim_sent, 0);
    bench.run();
    assert_eq!(bench.switch.counters(DOWN).trim_sent, 1);
    assert_eq!(bench.switch.drops().total(), 0);
}

// spec: SW-19
#[test]
fn packets_trimmed_elsewhere_are_not_counted_as_trims() {
    let mut bench = Bench::new(config(ROOM_FOR_ONE));
    bench.arrive(Instant::ZERO, trimmed(HOST));
    bench.run();
    let counters = bench.switch.counters(DOWN);
    assert_eq!((counters.frames_out, counters.trim, counters.trim_sent), (1, 0, 0));
}

// spec: SW-16, DSCP-5, DSCP-8
#[test]
fn what_may_not_be_trimmed_is_dropped() {
    let mut disabled = config(ROOM_FOR_ONE);
    disabled.attributes.trimming_enabled = false;
    let cases = [
        (config(ROOM_FOR_ONE), data(Role::NoTrim, HOST)),
        (config(ROOM_FOR_ONE), foreign(Role::Trimmable, HOST)),
        (disabled, data(Role::Trimmable, HOST)),
    ];
    for (config, frame) in cases {
        let mut bench = full(config, HOST);
        bench.arrive(Instant::ZERO, frame);
        bench.run();
        assert_eq!(bench.sent.len(), 1);
        assert_eq!(bench.events(), [Event::Drop { cause: "queue_full" }]);
        let counters = bench.switch.counters(DOWN);
        assert_eq!((counters.trim, counters.drops.of("queue_full")), (0, 1));
    }
}

// spec: SW-16, SW-19
#[test]
fn a_trimmed_packet_is_dropped_when_its_queue_is_full_too() {
    // Room for one packet of 60 bytes of datagram, and for one of 46.
    let small = |role| frame_of(&data_with(role, HOST, &[0x5A; 1]), 4_791);
    let mut bench = Bench::new(config(61));
    for _ in 0..3 {
        bench.arrive(Instant::ZERO, small(Role::Trimmable));
    }
    let counters = bench.switch.counters(DOWN);
    assert_eq!((counters.trim, counters.trim_drop), (2, 1));
    assert_eq!(counters.drops.iter().collect::<Vec<_>>(), [("trim_drop", 1)]);
    let trimmed = Event::Trimmed { port: 0 };
    let events = [trimmed.clone(), trimmed, Event::Drop { cause: "trim_drop" }];
    assert_eq!(bench.events(), events);
    bench.run();
    assert_eq!(bench.sent.len(), 2);
}

// spec: SW-19, SW-3
#[test]
fn at_rest_every_frame_and_every_trim_is_accounted_for() {
    let mut bench = Bench::new(config(3 * FULL_IP));
    let mut rng = Rng::derive(11, "arrivals", 0);
    let mut now = Instant::ZERO;
    for _ in 0..3_000 {
        now = now + Duration::from_ps(rng.below(60_000));
        let destination = if rng.chance(0.8) { HOST } else { BEHIND_UP };
        let frame = match rng.below(6) {
            0 => ack(destination),
            1 => data(Role::NoTrim, destination),
            2 => data(Role::TrimmableRtx, destination),
            _ => data(Role::Trimmable, destination),
        };
        bench.run_until(now);
        bench.arrive(now, frame);
    }
    bench.run();
    assert_eq!(bench.sent.len() as u64 + bench.switch.drops().total(), 3_000);
    for port in [DOWN, UP] {
        let counters = bench.switch.counters(port);
        assert_eq!(counters.trim, counters.trim_sent + counters.trim_drop);
        assert!(TrafficClass::all().all(|class| bench.switch.queued_bytes(port, class) == 0));
    }
    assert!(bench.switch.counters(DOWN).trim > 100);
}

/// The entropy values of the data that leaves whole when 40 packets arrive at
/// once at a queue for ten.
fn whole(victim: TrimVictim, seed: u64) -> Vec<u16> {
    let mut config = config(10 * FULL_IP);
    config.attributes.trim_victim = victim;
    let mut bench = Bench::new(config);
    bench.rng = Rng::derive(seed, "switch", 0);
    for entropy in 0..40 {
        let mut packet = data_with(Role::Trimmable, HOST, &[0; FULL]);
        packet.entropy = entropy;
        bench.arrive(Instant::ZERO, frame_of(&packet, 4_791));
    }
    bench.run();
    let counters = bench.switch.counters(DOWN);
    assert_eq!((bench.sent.len(), counters.trim, counters.trim_sent), (40, 30, 30));
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), 0);
    let data = bench.sent.iter().map(|(.., frame)| parse(frame));
    data.filter(|packet| packet.role == Some(Role::Trimmable)).map(|p| p.entropy).collect()
}

// spec: SW-17
#[test]
fn the_arriving_packet_or_the_newest_that_waits_is_cut() {
    assert_eq!(whole(TrimVictim::Arriving, 1), (0..10).collect::<Vec<_>>());
    let last = |seed| {
        let whole = whole(TrimVictim::Random, seed);
        assert_eq!((whole.len(), &whole[..9]), (10, &[0, 1, 2, 3, 4, 5, 6, 7, 8][..]));
        whole[9]
    };
    let last: Vec<_> = (0..64).map(last).collect();
    assert!(last.iter().filter(|entropy| **entropy == 39).count() > 20, "half of them: {last:?}");
    assert!(last.iter().filter(|entropy| **entropy < 39).count() > 20, "half of them: {last:?}");
}

// spec: SW-17
#[test]
fn a_packet_that_may_not_be_cut_keeps_its_place() {
    let mut config = config(2 * FULL_IP);
    config.attributes.trim_victim = TrimVictim::Random;
    let mut bench = Bench::new(config);
    (0..2).for_each(|_| bench.arrive(Instant::ZERO, data(Role::NoTrim, HOST)));
    (0..20).for_each(|_| bench.arrive(Instant::ZERO, data(Role::Trimmable, HOST)));
    bench.run();
    let whole = bench.roles().iter().filter(|role| **role == Some(Role::NoTrim)).count();
    assert_eq!((whole, bench.switch.counters(DOWN).trim), (2, 20));
}
