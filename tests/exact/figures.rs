//! The worked figures, to the picosecond.

use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::{Flow, Scenario};
use mrc_lab::time::Duration;
use mrc_lab::trace::{Direction, QpEventKind, RetransmitCause};
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::role::Role;

use crate::lab::*;

// spec: WIRE-7, WIRE-9, SEG-4, QP-4, PCIE-3, PCIE-6
#[test]
fn full_packets_leave_every_83_48_ns_once_the_first_payload_has_arrived() {
    let ran = run(&back_to_back().with_flow(flow(64 * 4096, 1)));
    let sent: Vec<_> = ran.packets(A, Direction::Tx, Kind::Write).collect();
    assert_eq!(sent.len(), 64);
    for (n, (at, packet)) in (1..).zip(&sent) {
        assert_eq!(*at, ps(FETCHED + n * FULL));
        assert_eq!(packet.wire_bytes, 4_174);
    }
    let arrived = ran.packets(B, Direction::Rx, Kind::Write).map(|(at, _)| at);
    assert!(arrived.eq(sent.iter().map(|(at, _)| *at + Duration::from_ps(DELAY))));
}

// spec: WL-1
#[test]
fn a_flow_that_starts_later_is_the_same_that_much_later() {
    let at_once = run(&back_to_back().with_flow(flow(3 * 4096, 1)));
    let start = Duration::from_us(70);
    let later = run(&back_to_back().with_flow(Flow { start, ..flow(3 * 4096, 1) }));
    let arrivals = |ran: &Ran, later| {
        let arrived = ran.packets(B, Direction::Rx, Kind::Write).map(|(at, _)| at + later);
        arrived.collect::<Vec<_>>()
    };
    assert_eq!(arrivals(&later, Duration::ZERO), arrivals(&at_once, start));
    let times = |ran: &Ran| ran.end.workload.results().next().expect("one").clone();
    assert_eq!(times(&later).started, Some(us(70)));
    assert_eq!(times(&later).completion_time(), times(&at_once).completion_time());
    assert!(times(&later).finished > Some(us(70)) && later.is_complete());
}

// spec: WL-1
#[test]
fn a_flow_starts_when_nothing_else_happens_and_while_others_run() {
    let starts = [0, 1, 500].map(Duration::from_us);
    let mut scenario = back_to_back();
    scenario.flows = starts.map(|start| Flow { start, ..flow(64 * 4096, 1) }).into();
    let ran = run(&scenario);
    let results: Vec<_> = ran.end.workload.results().cloned().collect();
    let started: Vec<_> = results.iter().filter_map(|result| result.started).collect();
    assert_eq!(started, [us(0), us(1), us(500)]);
    // The second one while the first was on its way, the third when all was over.
    let finished: Vec<_> = results.iter().filter_map(|result| result.finished).collect();
    assert!(finished[0] > started[1] && finished[1] < started[2] && finished[2] > started[2]);
    assert!(ran.is_complete());
}

// spec: ACK-5, ACK-2, ACK-4, SACK-2, ACK-10, ACK-1, SACK-1
#[test]
fn a_message_inside_the_window_draws_one_ack_and_a_sack_for_each_packet() {
    let ran = run(&back_to_back().with_flow(flow(64 * 4096, 1)));
    assert!(ran.is_complete());
    let acks: Vec<_> = ran.packets(B, Direction::Tx, Kind::Ack).collect();
    let sacks: Vec<_> = ran.packets(B, Direction::Tx, Kind::Sack).collect();
    assert_eq!((acks.len(), sacks.len()), (1, 64));
    assert_eq!((acks[0].1.wire_bytes, sacks[0].1.wire_bytes), (62, 94));
    assert_eq!(acks[0].1.psn, Psn::masked(63));
    let asked = ran.packets(A, Direction::Tx, Kind::Write).filter(|(_, p)| p.ack_request);
    assert!(asked.map(|(_, p)| p.psn).eq([Psn::masked(63)]));
    // The last SACK is queued first, the ACK behind it.
    let arrival = FETCHED + 64 * FULL + DELAY;
    assert_eq!(sacks[63].0, ps(arrival + SACK));
    assert_eq!(acks[0].0, ps(arrival + SACK + ACK));
}

// spec: DONE-1, RX-8, ACK-9
#[test]
fn the_three_completions_of_a_message() {
    let ran = run(&back_to_back().with_flow(flow(64 * 4096, 1)));
    let arrival = FETCHED + 64 * FULL + DELAY;
    // The egress pool holds 55 packets. When the first SACK comes back three have
    // left, and with each SACK behind it one more: the seventh lets the last one
    // be fetched.
    let seventh = FETCHED + 7 * FULL + DELAY + SACK + DELAY;
    assert_eq!(ran.event_at(A, QpEventKind::SendComplete), ps(seventh));
    assert_eq!(ran.event_at(B, QpEventKind::RecvComplete), ps(arrival));
    assert_eq!(ran.event_at(A, QpEventKind::WqeComplete), ps(arrival + SACK + ACK + DELAY));
}

// spec: SEG-2, REL-2
#[test]
fn a_message_of_0_bytes_is_78_bytes_on_the_wire_and_completes() {
    let ran = run(&back_to_back().with_flow(flow(0, 1)));
    assert!(ran.is_complete());
    let sent: Vec<_> = ran.packets(A, Direction::Tx, Kind::Write).collect();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].0, sent[0].1.wire_bytes), (ps(DOORBELL + REQUEST + 540 + 78 * 20), 78));
}

// spec: RTO-1, RTO-4, RTO-5, RTO-12, RTO-2
#[test]
fn a_packet_that_is_always_lost_is_sent_again_on_schedule() {
    let always = PacketMatch { kind: Some(Kind::Write), ..PacketMatch::default() };
    let scenario = back_to_back().with_flow(flow(1, 1)).with_fault(rule(FaultAction::Drop, always));
    let ran = run_to(&scenario, us(3_200));
    let again: Vec<_> = ran
        .packets(A, Direction::ReTx, Kind::Write)
        .inspect(|(_, p)| assert_eq!(p.cause, Some(RetransmitCause::Timeout)))
        .map(|(at, _)| at)
        .collect();
    // Each timer starts at the end of a serialization of 79 bytes and fires on
    // the next whole microsecond; the retransmission is sent at once.
    let serialization = 79 * 20;
    let timeouts = [150, 150, 150, 150, 150, 150, 150, 300, 600, 1_200];
    let mut sent = DOORBELL + REQUEST + 556 + serialization;
    for (n, timeout) in timeouts.into_iter().enumerate() {
        let expiry = (sent + timeout * 1_000_000).next_multiple_of(1_000_000);
        sent = expiry + serialization;
        assert_eq!(again.get(n).copied(), (sent <= 3_200_000_000).then(|| ps(sent)), "{n}");
    }
    assert_eq!(again[0], ps(151_000_000 + serialization));
}

// spec: RTO-8, RTO-11, RTO-12
#[test]
fn with_a_budget_of_seven_the_qp_fails_at_the_eighth_timeout() {
    let always = PacketMatch { kind: Some(Kind::Write), ..PacketMatch::default() };
    let scenario = back_to_back()
        .with_flow(flow(1, 1))
        .with_attributes(|a| a.exponential_retry_count = 0)
        .with_fault(rule(FaultAction::Drop, always));
    let ran = run(&scenario);
    assert_eq!(ran.counters[0].rtx_timeout, 7);
    // Seven timers of 150 us and one of 300, each rounded up by the
    // serialization before it.
    assert_eq!(ran.event_at(A, QpEventKind::QpError), us(7 * 151 + 301));
    assert_eq!(ran.counters[0].qp_error, 1);
    assert_eq!(ran.events(A, QpEventKind::WqeComplete).count(), 0);
    assert!(ran.end.workload.results().all(|result| result.failure.is_some()));
}

// spec: LOSS-1, LOSS-6, SACK-7
#[test]
fn a_loss_is_found_513_packets_later_and_a_round_trip() {
    let scenario =
        back_to_back().with_flow(flow(1_024 * 4096, 1)).with_fault(lose(Kind::Write, 11));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    assert_eq!(ran.counters[0].rtx_sack_gap, 1);
    assert_eq!((ran.counters[0].rtx, ran.counters[0].rto), (1, 0));
    let lost = ran.packets(A, Direction::Tx, Kind::Write).find(|(_, p)| p.psn.value() == 10);
    let found = first_instant(&scenario, |world| world.nic(A).counters().rtx_sack_gap == 1);
    let waited = found.since(lost.expect("it was sent").0).as_ps();
    // 42.8 us of sending, a round trip, and at most nine packets until the
    // block that reaches past the gap comes round.
    let earliest = 513 * FULL + 2 * DELAY + SACK;
    assert!((earliest..=earliest + 9 * FULL + ACK).contains(&waited), "{waited}");
}

// spec: DONE-2, DONE-3
#[test]
fn a_lost_final_ack_delays_completion_by_at_most_two_timeouts_and_a_round_trip() {
    let scenario = back_to_back().with_flow(flow(64 * 4096, 1)).with_fault_back(lose(Kind::Ack, 1));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    assert_eq!((ran.counters[0].completion_rerequests, ran.counters[0].rtx), (1, 0));
    let send_complete = FETCHED + 7 * FULL + DELAY + SACK + DELAY;
    let asked = send_complete + 300_000_000;
    let round_trip = FULL + DELAY + SACK + ACK + DELAY;
    assert_eq!(ran.event_at(A, QpEventKind::WqeComplete), ps(asked + round_trip));
    let again: Vec<_> = ran.packets(A, Direction::ReTx, Kind::Write).collect();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].1.cause, Some(RetransmitCause::Rerequest));
    assert_eq!(again[0].1.role, Some(Role::TrimmableRtx));
    assert_eq!(ran.counters[1].dup_events, 1);
    assert_eq!(ran.counters[1].write_bytes_rcvd, 64 * 4_096, "each byte counts once");
}

// case A02: the wrap is no reordering.
// spec: RX-6
#[test]
fn psns_wrap_in_order() {
    let scenario = back_to_back()
        .with_flow(flow(64 * 4096, 1))
        .with_attributes(|a| a.initial_psn = Psn::new(0xff_fff0));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let psns = ran.packets(B, Direction::Rx, Kind::Write).map(|(_, p)| p.psn.value());
    assert!(psns.eq((0..64).map(|n| (0xff_fff0 + n) & 0xff_ffff)));
    assert_eq!(ran.counters[1].out_of_order_events, 0);
    assert_eq!(ran.counters[0].rtx, 0);
    let acks: Vec<_> = ran.packets(B, Direction::Tx, Kind::Ack).map(|(_, p)| p.psn).collect();
    assert_eq!(acks, [Psn::masked(0x100_002f)]);
}

// spec: QP-5, RX-4, NACK-1, NACK-2, NACK-3, NACK-8, NACK-10, NACK-11
#[test]
fn a_trimmed_packet_that_arrives_first_creates_the_receiving_side() {
    let first = PacketMatch { psn: Some(Psn::masked(0)), nth: Some(1), ..PacketMatch::default() };
    let trim = rule(FaultAction::Trim { last_hop: true }, first);
    let ran = run(&back_to_back().with_flow(flow(8 * 4096, 1)).with_fault(trim));
    assert!(ran.is_complete());
    let received: Vec<_> = ran.packets(B, Direction::Rx, Kind::Write).collect();
    assert_eq!((received[0].1.role, received[0].1.wire_bytes), (Some(Role::TrimmedLastHop), 62));
    assert_eq!(ran.event_at(B, QpEventKind::QpCreated), received[0].0);
    assert_eq!(ran.packets(B, Direction::Tx, Kind::Nack).count(), 1);
    let (_, again) = ran.packets(A, Direction::ReTx, Kind::Write).next().expect("sent again");
    assert_eq!((again.psn.value(), again.cause), (0, Some(RetransmitCause::Nack)));
    assert_eq!((again.role, again.ack_request), (Some(Role::TrimmableRtx), true));
    assert_eq!((ran.counters[0].rtx_nack, ran.counters[0].rtx), (1, 1));
    assert_eq!(ran.counters[1].trimmed_pkts_rcvd, 1);
}

// case F21
// spec: REL-4, REL-5, QP-9
#[test]
fn nothing_is_left_of_10000_messages_on_10000_qps() {
    let scenario = back_to_back().with_flow(flow(100, 10_000));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    assert_eq!(ran.counters[0].qp_created, 10_000);
    assert_eq!(ran.counters[1].qp_closed, 10_000);
    assert_eq!(ran.holdings, [[0; 4]; 2]);
}

// spec: TIME-5
#[test]
fn the_same_scenario_twice_gives_the_same_trace() {
    let matches = PacketMatch { probability: 0.05, ..PacketMatch::default() };
    let scenario = over_a_switch()
        .with_flow(flow(512 * 4096, 2))
        .with_fault(rule(FaultAction::Drop, matches.clone()))
        .with_fault_back(rule(FaultAction::Drop, matches));
    let [first, second] = [run(&scenario), run(&scenario)];
    assert!(first.is_complete() && first.counters[0].rtx > 10);
    let text = |ran: &Ran| format!("{:?}", ran.trace.entries);
    assert_eq!(text(&first), text(&second));
    let other = run(&Scenario { seed: 2, ..scenario });
    assert_ne!(text(&first), text(&other));
}

// spec: CC-11
#[test]
fn a_window_below_a_packet_still_lets_one_packet_out_at_a_time() {
    let scenario = back_to_back()
        .with_flow(flow(3 * 4096, 1))
        .with_attributes(|a| a.config_base_rtt = Duration::from_ps(1));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let sent: Vec<_> = ran.packets(A, Direction::Tx, Kind::Write).map(|(at, _)| at).collect();
    let round_trip = REQUEST + COMPLETION + FULL + DELAY + SACK + DELAY;
    assert_eq!(sent, [0, 1, 2].map(|n| ps(FETCHED + FULL + n * round_trip)));
}
