//! Pauses, sent and honoured.

use super::*;

/// The pause that a switch asks for at 400 Gbps, and half of it.
const HALF_PAUSE: u64 = 32_767 * 1_280;
const PFC_TIME: u64 = 1_280;
/// Serialization of a datagram of 4,000 bytes.
const TIME: u64 = 80_360;

/// TC0 is lossless, and shares its pool with TC2 to TC7.
fn lossless() -> Bench {
    plain(|attributes| attributes.buffer.lossless[0] = true)
}

fn fill(bench: &mut Bench, count: usize) {
    (0..count).for_each(|_| bench.arrive(at(0), datagram(4_000, 0, HOST)));
}

fn pfc(pfc: Pfc) -> Frame {
    let mut frame = Frame::new();
    pfc.emit(mac(9, 9), &mut frame);
    frame
}

/// The PFC frames that have left, with port and time.
fn signals(bench: &Bench) -> Vec<(u64, PortId, [Option<u16>; 8])> {
    let pfc = bench.sent.iter().filter(|(.., frame)| Pfc::is_pfc(frame));
    pfc.map(|(at, port, frame)| (at.as_ps(), *port, Pfc::parse(frame).unwrap().quanta)).collect()
}

// spec: SW-7
#[test]
fn the_176th_packet_of_4000_bytes_pauses_the_sender_and_the_241st_is_lost() {
    let mut bench = lossless();
    fill(&mut bench, 175);
    bench.run_until(at(PFC_TIME));
    assert_eq!(signals(&bench), [], "700,000 bytes are not above 700,000");
    let mut bench = lossless();
    fill(&mut bench, 176);
    bench.run_until(at(PFC_TIME));
    assert_eq!(signals(&bench), [(PFC_TIME, UP, Pfc::one(0, 65_535).quanta)]);
    let mut bench = lossless();
    fill(&mut bench, 240);
    assert_eq!(bench.switch.drops().total(), 0);
    let pool = bench.switch.pool_counters(UP).next().unwrap();
    assert_eq!((pool.ingress_high_water, pool.headroom_high_water), (704_000, 256_000));
    fill(&mut bench, 1);
    assert_eq!(bench.switch.counters(UP).drops.of("headroom_full"), 1);
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), 960_000, "lossless: all in");
}

// spec: SW-8
#[test]
fn the_165th_departure_lets_the_sender_go_on() {
    let mut bench = lossless();
    fill(&mut bench, 240);
    // 64 give the headroom back, 101 take the occupancy from 704,000 to 300,000.
    bench.run_until(at(165 * TIME));
    assert_eq!(signals(&bench).len(), 1);
    bench.run();
    let resume = (165 * TIME + PFC_TIME, UP, Pfc::one(0, 0).quanta);
    assert_eq!(signals(&bench)[1..], [resume], "and it is not paused again");
    let class = &bench.switch.counters(UP).classes[0];
    assert_eq!((class.pauses_sent, class.resumes_sent), (1, 1));
}

// spec: SW-7
#[test]
fn a_pause_is_repeated_every_half_pause_time_until_it_ends() {
    let mut bench = lossless();
    let hold = |bench: &mut Bench, now| {
        bench.arrive_at(DOWN, at(now), pfc(Pfc::one(0, u16::MAX)));
    };
    hold(&mut bench, 0);
    fill(&mut bench, 176);
    for half in 1..=3 {
        bench.run_until(at(half * HALF_PAUSE - 1));
        hold(&mut bench, half * HALF_PAUSE - 1);
    }
    bench.run();
    let pauses: Vec<_> = signals(&bench).iter().map(|(at, ..)| *at).collect();
    let repeated: Vec<_> = (0..4).map(|half| half * HALF_PAUSE + PFC_TIME).collect();
    assert_eq!(pauses[..4], repeated);
    assert_eq!(signals(&bench).last().unwrap().2, Pfc::one(0, 0).quanta);
    assert_eq!(bench.switch.counters(DOWN).frames_out, 176);
}

// spec: SW-7
#[test]
fn every_lossless_class_of_the_pool_is_paused_by_a_frame_of_its_own() {
    let mut bench =
        plain(|a| a.buffer.lossless = [true, true, true, false, false, false, false, true]);
    fill(&mut bench, 176);
    bench.run_until(at(3 * PFC_TIME));
    let classes = [0, 2, 7].map(|class| Pfc::one(class, 65_535).quanta);
    assert_eq!(signals(&bench).iter().map(|(.., quanta)| *quanta).collect::<Vec<_>>(), classes);
}

// spec: SW-7
#[test]
fn lossy_classes_are_neither_paused_nor_charged_to_headroom() {
    let mut bench = plain(|a| a.buffer.lossless[1] = true);
    fill(&mut bench, 300);
    bench.run();
    assert_eq!(signals(&bench), []);
    let pool = bench.switch.pool_counters(UP).next().unwrap();
    assert_eq!((pool.headroom_high_water, pool.ingress_high_water), (0, 1_200_000));
}

// spec: SW-10
#[test]
fn a_paused_class_waits_for_the_pause_and_the_delay_and_others_go_on() {
    let mut bench = plain(|_| {});
    bench.arrive_at(DOWN, at(0), pfc(Pfc::one(0, 100)));
    bench.arrive(at(0), datagram(4_000, 0, HOST));
    bench.arrive(at(0), datagram(4_000, 8, HOST));
    bench.run();
    // 100 quanta of 1.28 ns and 500 ns.
    assert_eq!(bench.departures(), [(TIME, DOWN), (628_000 + TIME, DOWN)]);
    let class = &bench.switch.counters(DOWN).classes[0];
    assert_eq!((class.pauses_rcvd, class.resumes_rcvd), (1, 0));
    assert_eq!(bench.switch.drops().total(), 0);
}

// spec: SW-10
#[test]
fn a_fresh_pause_restarts_and_zero_quanta_resume() {
    let mut bench = plain(|_| {});
    bench.arrive(at(0), datagram(4_000, 0, HOST));
    bench.arrive(at(0), datagram(4_000, 0, HOST));
    bench.arrive_at(DOWN, at(0), pfc(Pfc::one(0, 100)));
    bench.run_until(at(600_000));
    bench.arrive_at(DOWN, at(600_000), pfc(Pfc::one(0, 100)));
    bench.run_until(at(1_000_000));
    assert_eq!(bench.departures(), [(TIME, DOWN)], "what is being sent is not interrupted");
    bench.arrive_at(DOWN, at(1_000_000), pfc(Pfc::one(0, 0)));
    bench.run();
    assert_eq!(bench.departures()[1..], [(1_000_000 + TIME, DOWN)]);
}

// spec: SW-10
#[test]
fn pfc_frames_leave_first() {
    let mut bench = lossless();
    for _ in 0..2 {
        bench.arrive(at(0), datagram(4_000, 63, BEHIND_UP));
    }
    fill(&mut bench, 176);
    bench.run_until(at(3 * TIME));
    let up: Vec<_> = bench.departures().into_iter().filter(|(_, port)| *port == UP).collect();
    assert_eq!(up, [(TIME, UP), (TIME + PFC_TIME, UP), (2 * TIME + PFC_TIME, UP)]);
}

// spec: SW-10, SW-2
#[test]
fn without_pacing_pauses_are_honoured_too() {
    let mut bench = plain(|attributes| attributes.paced = false);
    bench.arrive_at(DOWN, at(0), pfc(Pfc::one(0, 100)));
    for _ in 0..3 {
        bench.arrive(at(0), datagram(4_000, 0, HOST));
    }
    assert_eq!(bench.switch.poll_timeout(), Some(at(628_000)), "one deadline for all of them");
    bench.run();
    assert_eq!(bench.departures(), [(628_000, DOWN); 3]);
    assert_eq!(bench.switch.poll_timeout(), None);
}

// spec: SW-1, SW-7
#[test]
fn a_broken_pfc_frame_is_dropped_and_counted() {
    let mut bench = plain(|_| {});
    let mut frame = pfc(Pfc::one(0, 100));
    frame[15] = 2;
    bench.arrive_at(DOWN, at(0), frame);
    assert_eq!(bench.switch.counters(DOWN).drops.total(), 1);
    bench.arrive_at(DOWN, at(0), pfc(Pfc::one(0, 100)));
    assert_eq!(bench.switch.drops().total(), 1, "an unbroken one acts and is gone");
    assert_eq!(bench.sent, []);
}

// spec: SW-18
#[test]
fn the_uet_policys_lossless_classes_follow_enable_pfc() {
    let mut config = config(0);
    config.ports.iter_mut().for_each(|port| port.queue_limit = None);
    config.attributes.trimming_enabled = false;
    config.attributes.buffer.lossless[0] = true;
    config.attributes.plane_bdp = 64;
    let mut bench = Bench::new(config);
    fill(&mut bench, 176);
    bench.run_until(at(PFC_TIME));
    assert_eq!(signals(&bench).len(), 1);
    assert_eq!(bench.switch.drops().total(), 0, "and have no limit");
}
