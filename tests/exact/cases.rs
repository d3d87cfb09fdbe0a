//! Situations in which other transports went wrong, from end to end.

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::{Access, QpChoice, QpSide};
use mrc_lab::node::link::{FaultAction, FaultRule, PacketMatch};
use mrc_lab::scenario::{Flow, Scenario};
use mrc_lab::time::Duration;
use mrc_lab::trace::{Direction, NoTrace, RetransmitCause};
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::psn::Psn;

use crate::lab::*;
use crate::peer::*;
use crate::wiretap::BTH_AT;

/// `messages` messages of `bytes` from a to b on one QP, one after the other.
fn on_one_qp(bytes: u32, messages: u32) -> Flow {
    Flow { one_qp: true, depth: 1, ..flow(bytes, messages) }
}

fn first_psn(psn: u32) -> impl Fn(&mut NicAttributes) {
    move |a| a.initial_psn = Psn::new(psn)
}

/// What happens to each packet of `kind` with `probability`.
fn some(kind: Kind, probability: f64, action: FaultAction) -> FaultRule {
    rule(action, PacketMatch { kind: Some(kind), probability, ..PacketMatch::default() })
}

fn all(kind: Kind) -> PacketMatch {
    PacketMatch { kind: Some(kind), ..PacketMatch::default() }
}

// case A04: packets in any order and twice, wherever the window lies over the wrap.
// spec: RX-5, RX-6, RX-7, SACK-7
#[test]
fn a_window_over_the_wrap_takes_packets_in_any_order_and_twice() {
    for (seed, first) in (0..16).map(|n| (u64::from(n), 0xff_ffff - n * 20)) {
        let late = FaultAction::Hold(Duration::from_us(2 + seed));
        let mut scenario = back_to_back()
            .with_flow(flow(300 * 4096, 1))
            .with_attributes(first_psn(first))
            .with_fault(some(Kind::Write, 0.3, late))
            .with_fault(some(Kind::Write, 0.3, FaultAction::Duplicate))
            .with_fault_back(some(Kind::Sack, 0.3, late));
        scenario.seed = seed;
        let ran = run(&scenario);
        assert!(ran.is_complete(), "seed {seed}");
        let receiver = &ran.counters[1];
        assert!(receiver.out_of_order_events > 30 && receiver.dup_events > 30, "seed {seed}");
        assert_eq!(receiver.write_pkts_rcvd - receiver.dup_events, 300, "seed {seed}");
        // A held SACK may come when the QP is closed; nothing else is dropped.
        assert_eq!(ran.drops[0].total(), ran.drops[0].of("late_control"), "seed {seed}");
        assert_eq!((ran.counters[0].rtx, ran.drops[1].total()), (0, 0), "seed {seed}");
    }
}

// case A05: a number that grows past what its field holds, on a long-lived QP.
// spec: SEG-1, SEG-5, ACK-1
#[test]
fn a_qp_of_tiny_packets_runs_over_the_wrap() {
    let scenario = back_to_back()
        .with_flow(on_one_qp(5_000, 8))
        .with_attributes(|a| a.mss = 1)
        .with_attributes(first_psn(0xff_c000));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let psns = ran.packets(A, Direction::Tx, Kind::Write).map(|(_, packet)| packet.psn);
    assert!(psns.eq((0..40_000).map(|n| Psn::masked(0xff_c000 + n))));
    assert_eq!((ran.counters[0].rtx, ran.counters[1].out_of_order_events), (0, 0));
}

// case A05: the distance from the first PSN outgrows its 16 bits when the
// sender never learns the receiver's number.
// spec: QP-6, W-6
#[test]
fn a_sender_that_never_hears_a_sack_goes_on_past_65536_packets() {
    let scenario = back_to_back()
        .with_flow(on_one_qp(1_000, 70))
        .with_attributes(|a| a.mss = 1)
        .with_fault_back(rule(FaultAction::Drop, all(Kind::Sack)));
    let ran = run(&scenario);
    assert!(ran.is_complete());
    assert_eq!(ran.counters[0].write_pkts_sent, 70_000);
    assert_eq!((ran.counters[0].sack_pkts_rcvd, ran.counters[1].qp_created), (0, 1));
}

// case A07: a message of nothing takes one PSN, and the next message the next.
// spec: SEG-2, QP-7
#[test]
fn a_message_of_nothing_takes_one_psn() {
    let mut trace = mrc_lab::trace::MemoryTrace::default();
    let mut stage = Stage::new(&back_to_back(), &mut trace);
    let messages = [0, 1, 0, 0, 1].map(|bytes| stage.message(A, B, bytes));
    let (qpn, _) = stage.post(QpChoice::New, &messages[0]);
    for message in &messages[1..] {
        stage.post(QpChoice::Existing(qpn), message);
    }
    stage.step_until(|stage| stage.is_complete(A, 4));
    assert!(messages.iter().all(|message| stage.is_placed(message)));
    assert_eq!(stage.world.nic(B).counters().messages_rcvd, 5);
    drop(stage);
    let sent = trace.packets().filter(|(_, at, packet)| *at == A && packet.kind == Kind::Write);
    let sent: Vec<_> = sent.map(|(.., packet)| (packet.psn.value(), packet.wire_bytes)).collect();
    assert_eq!(sent, [(0, 78), (1, 79), (2, 78), (3, 78), (4, 79)]);
}

// case A09: lengths around the packet size.
// spec: SEG-1, SEG-3, SEG-4
#[test]
fn lengths_around_the_packet_size_end_in_a_short_packet() {
    for (bytes, lengths) in [
        (1, vec![1]),
        (4_095, vec![4_095]),
        (4_096, vec![4_096]),
        (4_097, vec![4_096, 1]),
        (8_191, vec![4_096, 4_095]),
        (8_192, vec![4_096, 4_096]),
    ] {
        let mut trace = NoTrace;
        let mut stage = Stage::new(&back_to_back(), &mut trace);
        let at_b = stage.listen(B);
        let message = stage.message(A, B, bytes);
        stage.deliver(&message);
        assert!(stage.is_placed(&message), "{bytes}");
        let frames = at_b.received(Kind::Write);
        let payloads: Vec<_> = frames.iter().map(|frame| frame.len() - (78 - 4)).collect();
        assert_eq!(payloads, lengths);
        assert!(frames.iter().all(|frame| frame[BTH_AT + 1] >> 4 & 3 == 0), "nothing is padded");
    }
}

// case A14: two senders whose QPs have the same number.
// spec: QP-6, QP-8, REL-3
#[test]
fn two_peers_with_the_same_qp_number_are_told_apart() {
    let mut scenario = three_hosts();
    // A NIC's numbers derive from its name.
    scenario.nics[2].name = scenario.nics[0].name.clone();
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let mut messages = [A, C].map(|from| stage.message(from, B, 50_000));
    messages[1].data.reverse();
    messages[1].source = stage.register(C, messages[1].data.clone(), Access::Local);
    let posted = messages.each_ref().map(|message| stage.post(QpChoice::New, message));
    assert_eq!(posted[0].0, posted[1].0, "the same number at both");
    stage.step_until(|stage| {
        messages.iter().zip(posted).all(|(m, (_, wqe_id))| stage.is_complete(m.from, wqe_id))
    });
    assert!(messages.iter().all(|message| stage.is_placed(message)));
    let sides: Vec<_> =
        stage.world.nic(B).qps().map(|info| (info.local.qpn, info.remote)).collect();
    assert_eq!(sides.len(), 2);
    assert!(sides[0].0 != sides[1].0 && sides[0].1.qpn == sides[1].1.qpn);
    assert!([A, B, C].iter().all(|node| stage.world.nic(*node).drops().total() == 0));
    for (message, (qpn, _)) in messages.iter().zip(posted) {
        stage.close(message.from, qpn);
    }
    sides.iter().for_each(|(qpn, _)| stage.close(B, *qpn));
    stage.run_for(Duration::from_secs(1));
    assert_eq!([A, B, C].map(|node| stage.world.nic(node).holdings()), [[0; 4]; 3]);
}

/// Per-packet entropy over four paths that differ in delay; nothing is lost.
fn four_unequal_paths(message: u32) -> Scenario {
    let mut scenario = back_to_back().with_flow(flow(message, 1));
    for value in 0..128 {
        let skew = Duration::from_us([0, 10, 20, 40][value % 4]);
        let path = PacketMatch { entropy: Some(49_152 + value as u16), ..PacketMatch::default() };
        if skew > Duration::ZERO {
            scenario = scenario.with_fault(rule(FaultAction::Hold(skew), path));
        }
    }
    scenario
}

// case B02: reordering between paths is no loss.
// spec: NACK-6, LOSS-1, MP-2
#[test]
fn paths_of_unequal_delay_cause_no_retransmission() {
    let ran = run(&four_unequal_paths(1_000 * 4_096));
    assert!(ran.is_complete());
    assert!(ran.counters[1].out_of_order_events > 500, "{}", ran.counters[1].out_of_order_events);
    assert_eq!((ran.counters[0].rtx, ran.counters[0].rto), (0, 0));
    assert_eq!((ran.counters[1].nack_pkts_sent, ran.counters[1].dup_events), (0, 0));
}

// case B04: a swapped pair draws no NACK and no retransmission.
// spec: NACK-6, RX-6
#[test]
fn two_swapped_packets_draw_no_nack() {
    let second = PacketMatch { psn: Psn::new(1), ..PacketMatch::default() };
    let late = FaultAction::Hold(Duration::from_ps(FULL * 3 / 2));
    let ran = run(&back_to_back().with_flow(flow(8 * 4096, 1)).with_fault(rule(late, second)));
    assert!(ran.is_complete());
    let arrived = ran.packets(B, Direction::Rx, Kind::Write).map(|(_, p)| p.psn.value());
    assert!(arrived.eq([0, 2, 1, 3, 4, 5, 6, 7]));
    assert_eq!(ran.counters[1].out_of_order_events, 1);
    assert_eq!((ran.counters[1].nack_pkts_sent, ran.counters[0].rtx), (0, 0));
}

// case B08: old SACKs while a resend is on its way, and after it.
// spec: LOSS-2, LOSS-7, ACK-7, SACK-8
#[test]
fn a_packet_has_one_resend_on_its_way_and_old_sacks_undo_nothing() {
    let lost = PacketMatch { psn: Psn::new(3), nth: Some(1), ..PacketMatch::default() };
    let resend = PacketMatch { retransmission: Some(true), ..PacketMatch::default() };
    let scenario = back_to_back()
        .with_attributes(|a| a.sack_loss_min_retx_pkts = 4)
        .with_attributes(|a| a.sack_gap_recovery_gate = false)
        .with_fault(rule(FaultAction::Drop, lost))
        .with_fault(rule(FaultAction::Hold(Duration::from_us(100)), resend));
    let mut trace = mrc_lab::trace::MemoryTrace::default();
    let mut stage = Stage::new(&scenario, &mut trace);
    let at_a = stage.listen(A);
    let message = stage.message(A, B, 64 * 4_096);
    let (qpn, first) = stage.post(QpChoice::New, &message);
    stage.run_for(Duration::from_us(50));
    let old = at_a.received(Kind::Sack);
    assert_eq!((old.len(), stage.world.nic(A).counters().rtx), (63, 1));
    let replay = |stage: &mut Stage<'_>| {
        let sum = |stage: &Stage<'_>| {
            let info = stage.side(A, QpSide::Requester).expect("a's side");
            let flight = stage.world.nic(A).bytes_in_flight(stage.ip(B));
            (info.cumulative, info.beyond_cumulative, info.messages, flight)
        };
        let before = sum(stage);
        old.iter().for_each(|sack| stage.inject(B, port0(A), sack.clone()));
        stage.run_for(Duration::ZERO);
        assert_eq!(sum(stage), before);
    };
    replay(&mut stage);
    assert_eq!(stage.world.nic(A).bytes_in_flight(stage.ip(B)), 4_096 + 60, "the resend alone");
    stage.step_until(|stage| stage.is_complete(A, first));
    replay(&mut stage);
    // The same numbers once more while a second message is on its way.
    let (_, second) = stage.post(QpChoice::Existing(qpn), &message);
    stage.run_for(Duration::from_us(1));
    replay(&mut stage);
    stage.step_until(|stage| stage.is_complete(A, second));
    assert!(stage.is_placed(&message));
    drop(stage);
    let again = trace.packets().filter(|(.., packet)| packet.direction == Direction::ReTx);
    let again: Vec<_> = again.map(|(.., p)| (p.psn.value(), p.cause)).collect();
    assert_eq!(again, [(3, Some(RetransmitCause::SackGap))]);
}

// case B10: an old request arrives again while the next one is under way.
// spec: RX-7, ACK-1, ACK-2, REL-2
#[test]
fn a_replayed_request_changes_nothing_and_draws_the_current_ack() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&back_to_back(), &mut trace);
    let [at_a, at_b] = [A, B].map(|node| stage.listen(node));
    let first = stage.message(A, B, 10 * 4_096);
    let second = stage.message(A, B, 200 * 4_096);
    let qpn = stage.deliver(&first);
    let old = at_b.received(Kind::Write);
    // The first message's memory is in other use by now.
    let key = first.target.rkey;
    stage.world.with_nic(B, |nic, _| nic.deregister_memory(key)).expect("it is registered");
    let (_, wqe_id) = stage.post(QpChoice::Existing(qpn), &second);
    stage.run_for(Duration::from_us(5));
    let before = stage.side(B, QpSide::Responder).expect("b's side");
    assert_eq!(before.messages, 1);
    let acks = at_a.received(Kind::Ack).len();
    old.iter().for_each(|frame| stage.inject(A, port0(B), frame.clone()));
    stage.run_for(Duration::ZERO);
    assert_eq!(stage.side(B, QpSide::Responder), Some(before.clone()));
    assert_eq!(stage.world.nic(B).counters().dup_events, 10);
    stage.run_for(Duration::from_us(1));
    // The replayed last packet asked for an ACK, and got today's.
    let drawn = at_a.received(Kind::Ack).split_off(acks);
    let cumulative = |frame: &Vec<u8>| {
        Psn::masked(u64::from(u32::from_be_bytes([
            0,
            frame[BTH_AT + 9],
            frame[BTH_AT + 10],
            frame[BTH_AT + 11],
        ])))
    };
    assert_eq!(drawn.iter().map(cumulative).collect::<Vec<_>>(), [before.cumulative]);
    stage.step_until(|stage| stage.is_complete(A, wqe_id));
    assert!(stage.is_placed(&second));
    assert_eq!((stage.world.nic(B).drops().total(), stage.world.nic(A).counters().rtx), (0, 0));
}

// A QP that fills the window of its group goes: the others have room again, and
// nothing else will tell them.
// spec: REL-5, SEG-8, RTO-11
#[test]
fn closing_a_qp_lets_those_that_waited_for_its_room_send() {
    let lost = rule(FaultAction::Drop, PacketMatch { limit: Some(1), ..all(Kind::Write) });
    let scenario = back_to_back()
        .with_attributes(|a| a.config_base_rtt = Duration::from_ns(50))
        .with_fault(lost);
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let [stuck, waiting] = [4_096, 100].map(|bytes| stage.message(A, B, bytes));
    let (first, _) = stage.post(QpChoice::New, &stuck);
    stage.run_for(Duration::from_us(10));
    let (_, wqe_id) = stage.post(QpChoice::New, &waiting);
    stage.run_for(Duration::from_us(10));
    assert_eq!(stage.world.nic(A).counters().pkts_sent, 1, "the second has no room");
    stage.close(A, first);
    stage.run_for(Duration::from_us(10));
    assert!(stage.is_complete(A, wqe_id) && stage.is_placed(&waiting));
}
