//! Which port of an equal-cost set packets take.

use super::*;
use crate::config::{EcmpHashMethod, LinkDownReaction, LoadBalancing};

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

fn reacting(reaction: LinkDownReaction, set: impl FnOnce(&mut SwitchAttributes)) -> Bench {
    let mut config = config(1_000_000);
    config.attributes.paths.link_down = reaction;
    set(&mut config.attributes);
    Bench::new(config)
}

fn link_state(bench: &mut Bench, port: PortId, up: bool) {
    bench.call(at(0), |switch, ctx| switch.handle_link_state(ctx, port, up));
}

/// How many of 64 flows take LEFT and RIGHT.
fn split(bench: &mut Bench) -> [usize; 2] {
    bench.sent.clear();
    (0..64).for_each(|flow| bench.arrive(at(0), of_flow(flow)));
    bench.run();
    [LEFT, RIGHT].map(|port| ports(bench).iter().filter(|taken| **taken == port).count())
}

// spec: SW-13
#[test]
fn a_port_whose_link_is_down_leaves_its_sets_when_told_until_it_is_up() {
    let mut bench = reacting(LinkDownReaction::Remove, |_| {});
    let before = split(&mut bench);
    assert!(before.iter().all(|count| *count > 16), "{before:?}");
    link_state(&mut bench, LEFT, false);
    assert_eq!(split(&mut bench), [0, 64]);
    link_state(&mut bench, RIGHT, false);
    assert_eq!(split(&mut bench), [0, 0]);
    assert_eq!(bench.switch.counters(UP).drops.of("next_hop_down"), 64);
    link_state(&mut bench, LEFT, true);
    assert_eq!(split(&mut bench), [64, 0]);
    link_state(&mut bench, RIGHT, true);
    assert_eq!(split(&mut bench), before, "each flow has its port back");
    // A set of one port too.
    link_state(&mut bench, DOWN, false);
    bench.arrive(at(0), ack(HOST));
    assert_eq!(bench.switch.counters(UP).drops.of("next_hop_down"), 65);
}

// spec: SW-13
#[test]
fn by_default_a_port_stays_whatever_its_link_does() {
    assert_eq!(SwitchAttributes::default().paths.link_down, LinkDownReaction::Keep);
    let mut bench = reacting(LinkDownReaction::Keep, |_| {});
    let before = split(&mut bench);
    link_state(&mut bench, LEFT, false);
    assert_eq!(split(&mut bench), before);
}

// spec: SW-12, SW-13
#[test]
fn direct_choice_falls_back_to_the_hash_where_its_port_has_left() {
    // The address ends in 2: the set's second port, RIGHT.
    let mut bench = reacting(LinkDownReaction::Remove, |a| {
        a.paths.hash = EcmpHashMethod::DprWithFallback;
    });
    assert_eq!(split(&mut bench), [0, 64]);
    link_state(&mut bench, RIGHT, false);
    assert_eq!(split(&mut bench), [64, 0]);
    link_state(&mut bench, RIGHT, true);
    assert_eq!(split(&mut bench), [0, 64]);
}

// spec: SW-13, SW-14
#[test]
fn a_flowlet_leaves_a_port_that_has_left() {
    let mut bench = reacting(LinkDownReaction::Remove, |a| {
        a.paths.load_balancing = LoadBalancing::Flowlet;
    });
    bench.arrive(at(0), of_flow(1));
    bench.run();
    let [first, other] = if ports(&bench) == [LEFT] { [LEFT, RIGHT] } else { [RIGHT, LEFT] };
    link_state(&mut bench, first, false);
    bench.arrive(us(1), of_flow(1));
    bench.run();
    assert_eq!(ports(&bench), [first, other]);
    link_state(&mut bench, other, false);
    bench.arrive(us(2), of_flow(1));
    assert_eq!(bench.switch.drops().of("next_hop_down"), 1);
}
