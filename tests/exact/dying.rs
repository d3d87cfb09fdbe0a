//! Peers that die, and peers that come back as strangers.

use std::collections::BTreeSet;

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::{PostError, QpChoice, QpSide, WorkRequest};
use mrc_lab::node::Node;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::Scenario;
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{NoTrace, NodeId, QpEventKind};
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::qpn::Qpn;

use crate::lab::*;
use crate::peer::*;

/// Bytes of a message that takes about 33 us to send.
const LONG: usize = 400 * 4_096;

/// Five retransmissions after timeouts, then the error.
fn small_budget(a: &mut NicAttributes) {
    (a.linear_retry_count, a.exponential_retry_count) = (3, 2);
}

/// Three hosts; b is dead from `from` on: nothing reaches it or leaves it.
fn b_dies(from: Instant, until: Option<Instant>) -> Scenario {
    let mut scenario = three_hosts();
    let matches = PacketMatch { from: Some(from), until, ..PacketMatch::default() };
    for faults in &mut scenario.links[1].faults {
        faults.push(rule(FaultAction::Drop, matches.clone()));
    }
    scenario
}

/// The sending sides of a's QPs with an event of `kind`, in its order.
fn at_a(stage: &Stage<'_>, kind: QpEventKind) -> Vec<Qpn> {
    let events = stage.events.iter().filter(|(_, node, event)| *node == A && event.kind == kind);
    events.map(|(.., event)| event.local.qpn).collect()
}

fn close_all(stage: &mut Stage<'_>, node: NodeId) {
    let open: Vec<_> = stage.world.nic(node).qps().map(|qp| qp.local.qpn).collect();
    for qpn in open {
        stage.close(node, qpn);
    }
}

fn holdings(stage: &Stage<'_>, node: NodeId) -> [usize; 4] {
    stage.world.nic(node).holdings()
}

// case A13: a peer fails with work outstanding.
// spec: REL-6, RTO-8, RTO-11, REL-5
#[test]
fn every_qp_to_a_dead_peer_ends_in_one_error_and_no_other_qp_does() {
    let mut trace = NoTrace;
    let scenario = b_dies(us(20), None).with_attributes(small_budget);
    let mut stage = Stage::new(&scenario, &mut trace);
    let to_b = [LONG; 3].map(|bytes| stage.message(A, B, bytes));
    let to_c = stage.message(A, C, LONG);
    let mut doomed: Vec<_> =
        to_b.iter().map(|message| stage.post(QpChoice::New, message).0).collect();
    let behind = stage.post(QpChoice::Existing(doomed[0]), &to_b[0]).1;
    let (_, to_c_id) = stage.post(QpChoice::New, &to_c);
    stage.run_for(Duration::from_us(25));
    // One that knows nothing of the peer's death begins after it.
    doomed.push(stage.post(QpChoice::New, &to_b[1]).0);
    stage.run_for(Duration::from_us(20_000));
    let mut failed = at_a(&stage, QpEventKind::QpError);
    failed.sort_unstable();
    assert_eq!(failed, doomed, "each once");
    assert!(stage.is_complete(A, to_c_id) && stage.is_placed(&to_c));
    assert_eq!(at_a(&stage, QpEventKind::WqeComplete).len(), 1);
    assert!(!stage.is_complete(A, behind));
    let nic = stage.world.nic(A);
    let told = nic.qps().filter_map(|qp| qp.error).map(|reason| reason.name());
    assert_eq!(told.collect::<Vec<_>>(), ["retry budget exceeded"; 4]);
    assert_eq!((nic.bytes_in_flight(stage.ip(B)), nic.poll_timeout()), (0, None));
    close_all(&mut stage, A);
    assert_eq!(holdings(&stage, A), [0; 4]);
    // What b had of it goes when it has been idle.
    assert_eq!(holdings(&stage, B)[0], 3);
    stage.run_for(Duration::from_secs(11));
    assert_eq!([A, B, C].map(|node| holdings(&stage, node)), [[0; 4]; 3]);
}

// case A13: opening again after the peer has failed and come back.
// spec: REL-6, SCHED-3
#[test]
fn after_a_failure_new_qps_to_the_same_peer_work() {
    let mut trace = NoTrace;
    let scenario = b_dies(us(20), Some(us(50_000))).with_attributes(small_budget);
    let mut stage = Stage::new(&scenario, &mut trace);
    let lost = stage.message(A, B, LONG);
    let (old, _) = stage.post(QpChoice::New, &lost);
    stage.run_for(Duration::from_us(50_000));
    assert_eq!(at_a(&stage, QpEventKind::QpError), [old]);
    stage.world.restart_nic(B);
    let message = stage.message(A, B, LONG);
    let again = refused(&mut stage, old, &message);
    assert_eq!(again, PostError::InError(old.value(), "retry budget exceeded"));
    let qpn = stage.deliver(&message);
    assert!(stage.is_placed(&message) && qpn != old);
    stage.close(A, old);
    assert_eq!(refused(&mut stage, old, &message), PostError::UnknownQp(old.value()));
    stage.deliver(&message);
    close_all(&mut stage, A);
    assert_eq!((holdings(&stage, A), stage.world.nic(A).counters().qp_error), ([0; 4], 1));
}

/// What posting `message` on `qpn` is refused for.
fn refused(stage: &mut Stage<'_>, qpn: Qpn, message: &Message) -> PostError {
    let work = WorkRequest {
        wqe_id: 1_000,
        peer: stage.ip(message.to),
        lkey: message.source.rkey,
        local_va: message.source.va,
        length: 1,
        remote_va: message.target.va,
        rkey: message.target.rkey,
    };
    let posted = stage
        .world
        .with_nic(message.from, |nic, ctx| nic.post_write(ctx, QpChoice::Existing(qpn), work));
    posted.expect_err("no such QP can send")
}

// spec: REL-6, RTO-10, REL-5
#[test]
fn without_a_budget_a_dead_peer_is_tried_until_the_operator_closes() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&b_dies(us(20), None), &mut trace);
    let message = stage.message(A, B, LONG);
    let (qpn, _) = stage.post(QpChoice::New, &message);
    let mut timeouts = 0;
    // Each timer runs twice as long as the one before it.
    for seconds in [1, 10, 100, 1_000] {
        stage.run_for(Duration::from_secs(seconds));
        let nic = stage.world.nic(A);
        assert!(nic.counters().rto > timeouts && nic.poll_timeout().is_some());
        timeouts = nic.counters().rto;
    }
    let side = stage.side(A, QpSide::Requester).expect("a's side");
    assert_eq!((side.error, side.messages), (None, 1), "visible: it waits");
    assert!(side.retransmissions.timeout > 0, "and tries");
    stage.close(A, qpn);
    assert_eq!((holdings(&stage, A), stage.world.nic(A).poll_timeout()), ([0; 4], None));
    stage.run_for(Duration::from_us(1));
    assert_eq!(at_a(&stage, QpEventKind::QpClosed), [qpn]);
    assert_eq!(at_a(&stage, QpEventKind::QpError), []);
}

// spec: REL-6, W-7, RTO-8
#[test]
fn a_restarted_peer_is_silent_to_old_numbers_and_serves_new_qps_at_once() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&three_hosts().with_attributes(small_budget), &mut trace);
    let old_message = stage.message(A, B, LONG);
    let (old, _) = stage.post(QpChoice::New, &old_message);
    stage.run_for(Duration::from_us(10));
    assert_ne!(stage.side(A, QpSide::Requester).expect("a's").remote.qpn, Qpn::NONE);
    stage.world.restart_nic(B);
    assert_eq!(holdings(&stage, B), [0; 4]);
    assert_eq!(stage.world.nic(B).memory(old_message.target.rkey), None);
    stage.run_for(Duration::from_us(100));
    assert!(stage.drops(B, "unknown_qp") > 10);
    assert_eq!((stage.world.nic(B).counters().pkts_sent, holdings(&stage, B)), (0, [0; 4]));
    let new_message = stage.message(A, B, LONG);
    let (_, wqe_id) = stage.post(QpChoice::New, &new_message);
    stage.step_until(|stage| stage.is_complete(A, wqe_id));
    assert!(stage.is_placed(&new_message));
    assert_eq!(at_a(&stage, QpEventKind::QpError), [], "the old one still tries");
    stage.run_for(Duration::from_us(20_000));
    assert_eq!(at_a(&stage, QpEventKind::QpError), [old]);
    assert_eq!(stage.world.nic(B).counters().qp_created, 1);
    close_all(&mut stage, A);
    assert_eq!(holdings(&stage, A), [0; 4]);
}

// A QP that has not learned the peer's number makes a side at the restarted
// peer, where its memory is not registered.
// spec: REL-6, REL-2, QP-6
#[test]
fn a_restarted_peer_refuses_old_qps_that_never_learned_its_number() {
    let mut trace = NoTrace;
    let mut scenario = three_hosts().with_attributes(small_budget);
    // Nothing comes back from b's former life.
    let former = PacketMatch { until: Some(us(10)), ..PacketMatch::default() };
    scenario.links[1].faults[0].push(rule(FaultAction::Drop, former));
    let mut stage = Stage::new(&scenario, &mut trace);
    let message = stage.message(A, B, LONG);
    let (qpn, _) = stage.post(QpChoice::New, &message);
    stage.run_for(Duration::from_us(10));
    stage.world.restart_nic(B);
    stage.run_for(Duration::from_us(1_000));
    assert_eq!(at_a(&stage, QpEventKind::QpError), [qpn]);
    let side = stage.side(A, QpSide::Requester).expect("a's side");
    assert_eq!(side.error.map(|reason| reason.name()), Some("remote access error"));
}

// spec: W-7, REL-6
#[test]
fn a_restarted_nic_takes_up_no_number_of_its_former_life() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&three_hosts(), &mut trace);
    let mut lives = Vec::new();
    for _ in 0..3 {
        let message = stage.message(A, B, 3 * 4_096);
        let key = message.source.rkey.0;
        let numbers: Vec<_> = (0..50).map(|_| stage.deliver(&message).value()).collect();
        assert!(stage.is_placed(&message));
        lives.push((key, numbers));
        stage.world.restart_nic(A);
    }
    let all: BTreeSet<_> = lives.iter().flat_map(|(_, numbers)| numbers).collect();
    assert_eq!(all.len(), 150);
    let keys: BTreeSet<_> = lives.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), 3);
    // What b still has of the former lives is in nobody's way.
    assert_eq!(stage.world.nic(B).qps().count(), 150);
}

// spec: REL-6, RTO-11
#[test]
fn what_waits_in_a_nic_is_lost_with_it_and_what_is_on_the_wire_is_not() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&back_to_back(), &mut trace);
    let message = stage.message(A, B, 10 * 4_096);
    let at_b = stage.listen(B);
    stage.post(QpChoice::New, &message);
    // The first packet is on the wire, the others are not.
    stage.step_until(|stage| stage.world.nic(A).counters().pkts_sent == 1);
    stage.world.restart_nic(A);
    stage.run_for(Duration::from_us(100));
    assert_eq!(at_b.received(Kind::Write).len(), 1);
    let nic = stage.world.nic(A);
    assert_eq!((nic.counters().pkts_sent, nic.holdings()), (0, [0; 4]));
    assert_eq!((stage.drops(A, "unknown_qp"), nic.drops().total()), (1, 1), "b's SACK");
}
