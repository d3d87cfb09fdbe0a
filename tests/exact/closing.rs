//! Completion, and what is left of QPs that are closed.

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::{Access, QpChoice, QpSide, WorkRequest};
use mrc_lab::node::Node;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::{Flow, Scenario, Topology};
use mrc_lab::sim::{InMemory, SimWorld};
use mrc_lab::time::Duration;
use mrc_lab::trace::{NoTrace, NodeId, QpEventKind};
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::role::Role;

use crate::bench::*;
use crate::lab::*;
use crate::wiretap::Seen;

/// A receiver that has received and closed a QP of `parts` parts.
fn closed(parts: u32, set: impl Fn(&mut NicAttributes)) -> Bench {
    let mut bench = Bench::alone(B, set);
    for n in 0..parts {
        bench.deliver(&bench.part(n, parts));
    }
    let qpn = bench.receiving_qpn();
    bench.close(qpn);
    bench.run_to(us(1));
    bench.sent();
    assert_eq!((bench.nic().qps().count(), bench.counters().qp_created), (0, 1));
    bench
}

// spec: REL-4, W-6, ACK-6
#[test]
fn a_closed_receiving_side_answers_only_packets_sent_again() {
    let mut bench = closed(3, |_| ());
    let part = |n| bench.part(n, 3).asking();
    let beyond = bench.part(3, 4).asking();
    let table: [(_, &[&str], _); 7] = [
        (part(0), &[], "late"),
        (part(2), &[], "late: the last, but no retransmission"),
        (part(1).again(), &["ACK 2"], "what filled a gap: the final ACK again"),
        (part(2).again(), &["ACK 2"], "the last one"),
        (beyond, &["NACK 3 UNEXP_EVENT"], "beyond the end"),
        (beyond.again(), &["NACK 3 UNEXP_EVENT RTX"], "sent again too"),
        (part(0).trimmed(Role::Trimmed), &[], "a late trim"),
    ];
    for (packet, answer, why) in table {
        assert_eq!(bench.answer(&packet), answer, "{why}");
    }
    assert_eq!(bench.drops("late_data"), 7);
    assert_eq!((bench.counters().qp_created, bench.counters().dup_events), (1, 0));
    assert_eq!(bench.counters().messages_rcvd, 1);
}

// The side had all of the message: a NACK would fetch what nobody lacks.
// spec: REL-4, NACK-2
#[test]
fn a_trimmed_retransmission_draws_the_final_ack_and_no_nack() {
    let mut bench = closed(3, |_| ());
    let trimmed = |n| bench.part(n, 3).again().asking().trimmed(Role::Trimmed);
    let [last, other] = [trimmed(2), trimmed(1)];
    assert_eq!(bench.answer(&last), ["ACK 2"]);
    assert_eq!(bench.answer(&other), ["ACK 2"]);
    let counters = bench.counters();
    assert_eq!((counters.trimmed_pkts_rcvd, bench.drops("late_data")), (0, 2));
}

// case C04: the receiving host is done at its last byte and closes before the
// last ACK is out.
// spec: REL-4, RX-8, DONE-3
#[test]
fn a_receiver_that_closes_at_recv_complete_leaves_no_sender_waiting() {
    for lost in [0, 1] {
        let ack = PacketMatch { kind: Some(Kind::Ack), limit: Some(lost), ..Default::default() };
        let scenario = back_to_back().with_fault_back(rule(FaultAction::Drop, ack));
        let mut bench = Bench::pair(scenario);
        bench.post(QpChoice::New, 2 * 4_096);
        bench.run_until(|bench| bench.counters().messages_rcvd == 1);
        bench.close(bench.receiving_qpn());
        assert_eq!((bench.counters().ack_pkts_sent, bench.counters().qp_closed), (0, 1));
        bench.run_to(us(310));
        assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1, "{lost} lost");
        assert_eq!(bench.counters_of(A).completion_rerequests, lost);
        assert_eq!((bench.drops("late_data"), bench.counters().ack_pkts_sent), (lost, 1 + lost));
        assert_eq!((bench.nic().holdings()[0], bench.counters().qp_created), (0, 1));
    }
}

// spec: REL-4, REL-3
#[test]
fn packets_by_number_find_the_tombstone_and_strangers_do_not() {
    let mut bench = Bench::alone(B, |_| ());
    bench.deliver(&bench.part(0, 1));
    let qpn = bench.receiving_qpn();
    bench.close(qpn);
    bench.run_to(us(1));
    bench.sent();
    let last = bench.part(0, 1).to(qpn).asking().again();
    assert_eq!(bench.answer(&last), ["ACK 0"]);
    assert!(bench.answer(&last.from(STRANGER)).is_empty());
    assert_eq!(bench.drops("bad_source"), 1);
}

// spec: REL-4, W-6
#[test]
fn a_tombstone_lasts_qp_tombstone_time() {
    let time = Duration::from_us(50);
    let mut bench = closed(1, |a| a.qp_tombstone_time = Some(time));
    let last = bench.part(0, 1).asking().again();
    bench.run_to(us(50));
    assert_eq!(bench.nic().holdings()[1], 0, "closed at 0, gone at 50 us");
    assert_eq!(bench.answer(&last), ["SACK 0 RTX", "ACK 0"], "a new QP");
    assert_eq!(bench.counters().qp_created, 2);
    let mut bench = closed(1, |_| ());
    bench.run_to(us(512 * 150 - 1));
    assert_eq!(bench.answer(&last), ["ACK 0"]);
    bench.run_to(us(512 * 150));
    assert_eq!(bench.nic().holdings(), [0; 4]);
}

// spec: REL-4
#[test]
fn at_max_tombstones_the_oldest_goes_first() {
    let mut bench = Bench::alone(B, |a| a.max_tombstones = 2);
    let from = |bench: &Bench, number| {
        bench.part(0, 1).bth(|bth| bth.destination_qp = Qpn::masked(number))
    };
    for number in 10..13 {
        bench.deliver(&from(&bench, number));
        let qpn = bench.receiving_qpn();
        bench.close(qpn);
    }
    bench.run_to(us(1));
    bench.sent();
    let again = [10, 12, 11].map(|number| bench.answer(&from(&bench, number).again()));
    assert_eq!(again.map(|lines| lines.join(", ")), ["SACK 0 RTX, ACK 0", "ACK 0", "ACK 0"]);
}

// spec: REL-4, DONE-2, W-6
#[test]
fn a_lost_final_ack_after_closing_never_leaves_the_sender_retrying() {
    let no_ack = PacketMatch { kind: Some(Kind::Ack), limit: Some(2), ..PacketMatch::default() };
    let scenario = back_to_back().with_fault_back(rule(FaultAction::Drop, no_ack));
    let mut bench = Bench::pair(scenario);
    bench.post(QpChoice::New, 2 * 4_096);
    bench.run_to(us(10));
    let qpn = bench.receiving_qpn();
    bench.close(qpn);
    bench.run_to(us(1_000));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1);
    assert_eq!(bench.counters_of(A).completion_rerequests, 2);
    assert_eq!((bench.drops("late_data"), bench.counters().qp_created), (2, 1));
}

// spec: REL-4
#[test]
fn nor_does_the_lost_ack_of_what_filled_a_gap_before_a_packet_that_was_sacked() {
    let first = PacketMatch { psn: Some(psn(0)), limit: Some(1), ..PacketMatch::default() };
    // The SACK and the ACK that the retransmission draws at 151 us.
    let last = PacketMatch { from: Some(us(100)), limit: Some(2), ..PacketMatch::default() };
    let scenario = back_to_back()
        .with_fault(rule(FaultAction::Drop, first))
        .with_fault_back(rule(FaultAction::Drop, last));
    let mut bench = Bench::pair(scenario);
    bench.post(QpChoice::New, 2 * 4_096);
    bench.run_until(|bench| bench.counters().messages_rcvd == 1);
    bench.close(bench.receiving_qpn());
    bench.run_to(us(1_000));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1);
    assert_eq!((bench.counters_of(A).rto, bench.drops("late_data")), (2, 1));
}

// spec: DONE-2, DONE-3, NACK-10
#[test]
fn rerequests_are_duplicates_of_the_last_packet_that_start_no_timer() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 3 * 4_096);
    bench.run_to(us(1));
    bench.sent();
    bench.deliver(&bench.sack(qpn, 0, &[1, 2]));
    // SEND_COMPLETE was at 15 ns: re-requests at 300.015 us and every 300 us after.
    bench.run_to(us(1_000));
    let sent = bench.sent();
    let ladder: Vec<_> = sent.iter().map(|s| (s.at.as_ps(), s.line())).collect();
    let at = |n: u64| (15_000 + n * 300_000_000 + FULL, "LAST 2 A RTX".to_owned());
    assert_eq!(ladder, [at(1), at(2), at(3)]);
    let entropy: Vec<_> = sent.iter().map(|s| s.packet().entropy).collect();
    assert_eq!(entropy, [49_155, 49_156, 49_157]);
    assert!(sent.iter().all(|s| s.packet().role == Some(Role::TrimmableRtx)));
    let counters = bench.counters();
    assert_eq!((counters.completion_rerequests, counters.rtx, counters.rto), (3, 0, 0));
    assert_eq!(bench.in_flight(), 0);
    bench.deliver(&bench.ack(qpn, 2));
    bench.run_to(us(2_000));
    assert_eq!((bench.sent().len(), bench.nic().poll_timeout().is_some()), (0, false));
}

// spec: DONE-2
#[test]
fn only_a_message_whose_packets_are_all_retired_is_asked_for_again() {
    let mut bench = Bench::alone(A, |a| a.initial_ack_timeout = Duration::from_us(100));
    let qpn = bench.post(QpChoice::New, 3 * 4_096);
    bench.post(QpChoice::Existing(qpn), 4_096);
    bench.run_to(us(1));
    // The first message lacks packet 1; the second is retired whole.
    bench.deliver(&bench.sack(qpn, 0, &[2, 3]));
    bench.run_to(us(250));
    assert_eq!(bench.counters().completion_rerequests, 0);
    bench.deliver(&bench.sack(qpn, 3, &[]));
    bench.run_to(us(399));
    assert_eq!(bench.counters().completion_rerequests, 0);
    bench.run_to(us(401));
    assert_eq!(bench.counters().completion_rerequests, 2);
}

// spec: DONE-2, SEG-6
#[test]
fn a_rerequest_needs_no_room_in_the_window() {
    let mut bench = Bench::alone(A, |_| ());
    let small = bench.post(QpChoice::New, 1);
    bench.run_to(us(1));
    bench.deliver(&bench.sack(small, 0, &[]));
    bench.run_to(us(250));
    bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(300));
    assert_eq!(bench.in_flight(), 109 * 4_156);
    bench.sent();
    bench.run_to(us(310));
    assert_eq!(bench.lines(), ["ONLY 0 A RTX"]);
    assert_eq!(bench.in_flight(), 109 * 4_156);
}

// spec: W-7
#[test]
fn first_psns_and_qp_numbers_differ_and_none_is_reserved() {
    let mut scenario = back_to_back().with_attributes(|a| a.initial_psn = None);
    scenario.flows = vec![flow(100, 50)];
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let first = |seen: &Seen| (seen.packet().bth.psn.value(), seen.packet().bth.destination_qp);
    let firsts: Vec<_> = ran.data_sent(A).map(first).collect();
    let psns: std::collections::BTreeSet<_> = firsts.iter().map(|(psn, _)| *psn).collect();
    assert!(psns.len() == 50 && firsts.iter().all(|(_, qpn)| !qpn.is_reserved()));
    let numbers = firsts.windows(2).map(|pair| pair[1].1.value().wrapping_sub(pair[0].1.value()));
    assert!(numbers.into_iter().all(|step| step == 1), "counted up");
    let other = run(&Scenario { seed: 2, ..scenario });
    assert_ne!(other.data_sent(A).map(first).collect::<Vec<_>>(), firsts);
}

/// Runs `scenario` step by step; after each, whoever waits for something has a
/// timer armed. Gives how many messages completed.
fn run_watched(scenario: &Scenario) -> usize {
    let topology = Topology::new(scenario);
    let mut trace = NoTrace;
    let mut world = SimWorld::new(&topology, scenario.seed, InMemory, &mut trace);
    post_flows(&mut world, scenario);
    let mut completed = 0;
    let mut steps = 0;
    while world.next_instant().is_some_and(|at| at < us(5_000_000)) {
        world.step().expect("memory carries all");
        while let Some((_, node, event)) = world.poll_event() {
            if event.kind == QpEventKind::WqeComplete {
                completed += 1;
                world.with_nic(node, |nic, ctx| nic.close_qp(ctx, event.local.qpn));
            }
        }
        for node in [A, B] {
            let nic = world.nic(node);
            let waits = nic
                .qps()
                .any(|qp| qp.error.is_none() && qp.side == QpSide::Requester && qp.messages > 0);
            assert!(!waits || nic.poll_timeout().is_some(), "{node:?} at {}", world.now());
        }
        steps += 1;
        assert!(steps < 2_000_000, "a timer fires without progress");
    }
    completed
}

fn post_flows(world: &mut SimWorld<'_>, scenario: &Scenario) {
    for flow in &scenario.flows {
        let [from, to] = [flow.from, flow.to].map(|node| NodeId(node as u32));
        let mut register = |node, access| {
            let bytes = vec![1; flow.bytes as usize];
            world.with_nic(node, |nic, ctx| nic.register_memory(ctx, bytes, access))
        };
        let source = register(from, Access::Local);
        let target = register(to, Access::RemoteWrite);
        for wqe_id in 0..u64::from(flow.messages) {
            let work = WorkRequest {
                wqe_id,
                peer: scenario.nics[flow.to].ip,
                lkey: source.rkey,
                local_va: source.va,
                length: flow.bytes,
                remote_va: target.va,
                rkey: target.rkey,
            };
            world
                .with_nic(from, |nic, ctx| nic.post_write(ctx, QpChoice::New, work))
                .expect("a good request");
        }
    }
}

// spec: REL-5, DONE-3, NACK-11, RTO-3, LOSS-2
#[test]
fn whoever_waits_for_something_has_a_timer_armed() {
    let any = |probability| PacketMatch { probability, ..PacketMatch::default() };
    let trim = FaultAction::Trim { last_hop: true };
    for seed in 0..12 {
        let faults = [
            rule(FaultAction::Drop, any(0.1)),
            rule(trim, any(0.1)),
            rule(FaultAction::Duplicate, any(0.1)),
            rule(FaultAction::Hold(Duration::from_us(7)), any(0.1)),
            rule(FaultAction::Corrupt { bit: None }, any(0.05)),
        ];
        let mut scenario = back_to_back().with_attributes(|a| {
            a.mss = 1_000;
            a.max_psn_range = 64;
            a.sack_loss_min_retx_pkts = 16;
            a.sack_gap_recovery_gate = seed % 2 == 0;
            a.config_base_rtt = Duration::from_ns(400);
            a.icrc = true;
        });
        scenario.seed = seed;
        scenario.links[0].faults = [faults.to_vec(), faults.to_vec()];
        let back = Flow { from: 1, to: 0, ..flow(30_000, 4) };
        scenario.flows = vec![flow(100_000, 3), flow(0, 3), flow(999, 5), back];
        assert_eq!(run_watched(&scenario), 15, "seed {seed}");
    }
}

// spec: PB-6, REL-5
#[test]
fn memory_stays_registered_until_its_messages_are_complete() {
    let mut bench = Bench::alone(A, |_| ());
    let key = bench.source.rkey;
    let deregister =
        |bench: &mut Bench| bench.world.with_nic(A, |nic, _| nic.deregister_memory(key).is_some());
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    assert!(!deregister(&mut bench), "posted");
    bench.run_to(us(1));
    bench.deliver(&bench.sack(qpn, 3, &[]));
    assert!(!deregister(&mut bench), "its last packet may be asked for again");
    bench.deliver(&bench.ack(qpn, 3));
    assert!(deregister(&mut bench));
}

// spec: REL-5, RTO-8
#[test]
fn nothing_is_armed_once_every_qp_has_failed() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 1;
        a.exponential_retry_count = 1;
    });
    bench.post(QpChoice::New, 200 * 4_096);
    bench.post(QpChoice::New, 1);
    bench.run_to(us(100_000));
    assert_eq!(bench.counters().qp_error, 2);
    assert_eq!(bench.nic().poll_timeout(), None);
}

// spec: DONE-1, ACK-9, RX-8
#[test]
fn send_complete_comes_with_the_last_segment_and_wqe_complete_with_the_ack() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 110 * 4_096);
    bench.run_to(us(20));
    assert_eq!(bench.events(A, QpEventKind::SendComplete), [], "one segment has no room yet");
    bench.deliver(&bench.sack(qpn, 5, &[]));
    let (at, _) = bench.events(A, QpEventKind::SendComplete)[0];
    assert_eq!(at, us(20));
    bench.run_to(us(30));
    bench.deliver(&bench.sack(qpn, 109, &[]));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete), []);
    bench.run_to(us(40));
    bench.deliver(&bench.ack(qpn, 109));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete)[0].0, us(40));
}

// spec: QP-9, QP-1
#[test]
fn a_qp_for_each_message_leaves_only_tombstones_behind() {
    let ran = run_to(&back_to_back().with_flow(flow(10_000, 20)), us(1_000));
    assert!(ran.is_complete());
    assert_eq!((ran.counters[0].qp_created, ran.counters[0].qp_closed), (20, 20));
    assert_eq!((ran.counters[1].qp_created, ran.counters[1].qp_closed), (20, 20));
    assert_eq!(ran.holdings, [[0, 0, 0, 0], [0, 20, 0, 0]]);
}
