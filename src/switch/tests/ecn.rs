//! Marks on what leaves a long queue.

use super::*;

/// 72 full packets fit the limit of 300,000 bytes. The mean grows to 63 of them,
/// more than 0.8 of the limit.
fn burst(destination: Ipv4Addr, set: impl FnOnce(&mut SwitchAttributes)) -> Bench {
    let mut config = config(300_000);
    set(&mut config.attributes);
    let mut bench = Bench::new(config);
    (0..72).for_each(|_| bench.arrive(at(0), data(Role::Trimmable, destination)));
    bench.run();
    bench
}

fn marked(bench: &Bench) -> usize {
    let sent = bench.sent.iter().map(|(.., frame)| FrameView::new(frame).unwrap().ecn());
    sent.filter(|ecn| *ecn == Ecn::Ce).count()
}

// spec: SW-11, SW-19
#[test]
fn a_burst_is_marked_but_for_its_first_packet() {
    for (destination, port) in [(HOST, DOWN), (BEHIND_UP, UP)] {
        let bench = burst(destination, |_| {});
        assert_eq!((bench.sent.len(), marked(&bench)), (72, 71));
        assert_eq!(parse(&bench.sent[0].2).ecn, Ecn::Ect0);
        let counters = bench.switch.counters(port);
        assert_eq!((counters.marked, counters.classes[0].marked), (71, 71));
    }
}

// spec: SW-11, SW-15
#[test]
fn nothing_is_marked_without_ecn_or_towards_a_nic_where_that_is_off() {
    assert_eq!(marked(&burst(HOST, |a| a.ecn.enabled = false)), 0);
    assert_eq!(marked(&burst(HOST, |a| a.ecn.last_hop = false)), 0);
    assert_eq!(marked(&burst(BEHIND_UP, |a| a.ecn.last_hop = false)), 71);
}

// spec: SW-11
#[test]
fn only_what_takes_part_is_marked() {
    for (ecn, expected) in [(Ecn::NotEct, 0), (Ecn::Ect1, 19), (Ecn::Ect0, 19)] {
        let mut bench = Bench::new(config(100_000));
        for _ in 0..20 {
            let mut packet = data_with(Role::Trimmable, HOST, &[0; FULL]);
            packet.ecn = ecn;
            bench.arrive(at(0), frame_of(&packet, 4_791));
            bench.arrive(at(0), ack(HOST));
        }
        bench.run();
        let data = bench.sent.iter().filter(|(.., frame)| parse(frame).role != Some(Role::Control));
        let marked = data.filter(|(.., frame)| parse(frame).ecn == Ecn::Ce).count();
        let marks = bench.switch.counters(DOWN).marked as usize;
        assert!(marked <= expected && marks == marked, "{marked} of {ecn:?}");
        assert_eq!(marked > 0, expected > 0);
    }
}

// spec: SW-11
#[test]
fn the_mean_follows_admissions_with_its_weight() {
    let mut bench = Bench::new(config(300_000));
    let mut mean = 0.0;
    for queued in 1..=20_u64 {
        bench.arrive(at(0), data(Role::Trimmable, HOST));
        mean = 0.9 * mean + 0.1 * (queued * FULL_IP) as f64;
        let seen = bench.switch.buffer.mean_egress(DOWN, 0);
        assert!((seen - mean).abs() < 1e-6, "{seen} {mean}");
    }
    bench.run();
    let after = bench.switch.buffer.mean_egress(DOWN, 0);
    assert!((after - mean).abs() < 1e-6, "departures leave it");
}
