//! Which port of an equal-cost set packets take.

use super::*;
use crate::config::LoadBalancing;

/// A switch whose flows may change their port after `gap`.
fn flowlet(gap: Duration, pfc_aware: bool) -> Bench {
    let mut config = config(1_000_000);
    config.attributes.paths.load_balancing = LoadBalancing::Flowlet;
    config.attributes.paths.flowlet_gap = gap;
    config.attributes.paths.pfc_aware = pfc_aware;
    Bench::new(config)
}

/// A full packet of the flow `entropy` to where LEFT and RIGHT lead.
fn of_flow(entropy: u16) -> Frame {
    let packet = data_with(Role::Trimmable, BEHIND_BOTH, &[0; FULL]);
    frame_of(&Packet { entropy, ..packet }, 4_791)
}

/// The ports by which what has been sent left, in the order of leaving.
fn ports(bench: &Bench) -> Vec<PortId> {
    bench.sent.iter().map(|(_, port, _)| *port).collect()
}

/// How many full packets wait at LEFT and at RIGHT.
fn waiting(bench: &Bench) -> [u64; 2] {
    [LEFT, RIGHT].map(|port| bench.switch.queued_bytes(port, TrafficClass::DATA) / FULL_IP)
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

// spec: SW-14
#[test]
fn without_a_gap_each_packet_takes_the_port_with_the_least_to_send() {
    let mut bench = flowlet(Duration::ZERO, true);
    for packets in 1..=20 {
        bench.arrive(at(0), of_flow(1));
        let [left, right] = waiting(&bench);
        assert!(left + right == packets && left.abs_diff(right) <= 1, "{left} and {right}");
    }
}

// spec: SW-14
#[test]
fn a_flow_keeps_a_busy_port_until_it_has_been_idle() {
    let mut bench = flowlet(Duration::from_us(100), true);
    bench.arrive(at(0), of_flow(1));
    bench.run();
    let first = ports(&bench)[0];
    // Something waits at the port; the flow comes just in time, twice, and then not.
    for (now, kept) in [(us(99), true), (us(198), true), (us(298), false)] {
        let busy = bench.switch.buffer.charge_egress(first, TrafficClass::DATA, FULL_IP, false);
        assert_eq!(busy, Ok(()));
        bench.arrive(now, of_flow(1));
        bench.switch.buffer.release_egress(first, TrafficClass::DATA, FULL_IP);
        bench.run();
        assert_eq!(ports(&bench).last() == Some(&first), kept, "{now:?}");
    }
}

// spec: SW-14
#[test]
fn equally_idle_ports_are_drawn_from_the_switchs_own_stream() {
    let drawn = |seed| {
        let mut bench = flowlet(Duration::from_us(100), true);
        bench.rng = Rng::derive(seed, "switch", 0);
        for flow in 0..64 {
            bench.arrive(us(u64::from(flow)), of_flow(flow));
            bench.run_until(us(u64::from(flow) + 1));
        }
        ports(&bench)
    };
    let first = drawn(1);
    assert_eq!(first, drawn(1), "a seed draws alike");
    assert_ne!(first, drawn(2));
    let left = first.iter().filter(|port| **port == LEFT).count();
    assert!((16..=48).contains(&left), "{left} of 64 flows on one of two ports");
}

/// The peer at `port` pauses TC0.
fn pause(bench: &mut Bench, port: PortId) {
    let mut frame = Frame::new();
    Pfc::one(TrafficClass::DATA.index(), u16::MAX).emit(mac(2, port.0), &mut frame);
    bench.arrive_at(port, at(0), frame);
}

// spec: SW-14
#[test]
fn paused_ports_are_avoided_where_the_switch_is_aware_of_them() {
    for (aware, waits) in [(true, [0, 4]), (false, [2, 2])] {
        let mut bench = flowlet(Duration::ZERO, aware);
        pause(&mut bench, LEFT);
        (0..4).for_each(|flow| bench.arrive(at(0), of_flow(flow)));
        assert_eq!(waiting(&bench), waits, "{aware}");
        // The least of two evils.
        pause(&mut bench, RIGHT);
        (0..4).for_each(|flow| bench.arrive(at(0), of_flow(flow)));
        assert_eq!(waiting(&bench), [4, 4], "{aware}");
    }
    // Another class is free to go there.
    let mut bench = flowlet(Duration::ZERO, true);
    pause(&mut bench, LEFT);
    (0..64).for_each(|_| bench.arrive(at(0), ack(BEHIND_BOTH)));
    bench.run_until(us(1));
    assert!(ports(&bench).contains(&LEFT));
}
