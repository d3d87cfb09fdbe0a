//! Trimmed and refused packets, at both ends.

use mrc_lab::nic::QpChoice;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::Flow;
use mrc_lab::time::Duration;
use mrc_lab::trace::{Direction, QpEventKind, RetransmitCause};
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::{Body, Packet};
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::role::Role;

use crate::bench::*;
use crate::lab::*;

/// A sender whose 4 packets have left.
fn sender() -> (Bench, Qpn) {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    bench.run_to(us(10));
    assert_eq!(bench.sent().len(), 4);
    (bench, qpn)
}

/// What a control packet makes the sender send.
fn draws(bench: &mut Bench, packet: Packet<'_>) -> Vec<String> {
    bench.deliver(&packet);
    bench.run_for(Duration::from_us(1));
    bench.lines()
}

// spec: NACK-2, NACK-3, NACK-4, NACK-7, W-5, W-12, WIRE-5
#[test]
fn a_trimmed_packet_stays_a_gap_and_draws_a_nack_that_reflects_it() {
    for (role, name) in [(Role::Trimmed, "TRIMMED"), (Role::TrimmedLastHop, "TRIMMED_LASTHOP")] {
        let mut bench = Bench::alone(B, |_| ());
        let trimmed = bench.part(0, 8).trimmed(role).asking().again();
        let answers = bench.answers(&trimmed);
        assert_eq!(answers.len(), 1, "no ACK and no SACK");
        assert_eq!(answers[0].line(), format!("NACK 0 {name} RTX"));
        let packet = answers[0].packet();
        let Body::Nack(neth) = packet.body else { panic!("a NACK") };
        assert_eq!((packet.entropy, neth.entropy, answers[0].wire_bytes()), (ENTROPY, ENTROPY, 78));
        assert_eq!((neth.psn, packet.bth.psn), (psn(0), psn(0)));
        assert_eq!(
            (packet.bth.destination_qp, neth.source_qp),
            (SENDER_QPN, bench.receiving_qpn())
        );
        assert_eq!(bench.answer(&bench.part(1, 8).asking()), ["SACK -1 [1]", "ACK -1"]);
        assert_eq!(bench.counters().trimmed_pkts_rcvd, 1);
    }
}

// spec: NACK-3, DSCP-2
#[test]
fn a_receiver_without_trimming_counts_a_trim_and_says_nothing() {
    let mut bench = Bench::alone(B, |a| a.trimming_enabled = false);
    assert!(bench.answer(&bench.part(0, 8).trimmed(Role::Trimmed)).is_empty());
    assert_eq!(bench.counters().trimmed_pkts_rcvd, 1);
    let first = PacketMatch { psn: Some(psn(1)), nth: Some(1), ..PacketMatch::default() };
    let trim = rule(FaultAction::Trim { last_hop: false }, first);
    let scenario = back_to_back().with_flow(flow(4 * 4_096, 1)).with_fault(trim);
    let ran = run(&scenario.with_attributes(|a| a.trimming_enabled = false));
    assert!(ran.is_complete());
    let causes = ran.packets(A, Direction::ReTx, Kind::Write).map(|(_, packet)| packet.cause);
    assert!(causes.eq([Some(RetransmitCause::Timeout)]));
}

// spec: NACK-6
#[test]
fn a_gap_draws_no_nack() {
    let mut bench = Bench::alone(B, |_| ());
    for n in [5, 3, 7, 1, 600] {
        let answer = bench.answer(&bench.part(n, 900).asking());
        assert!(answer.iter().all(|line| !line.starts_with("NACK")), "{answer:?}");
    }
}

// spec: NACK-8, NACK-10, NACK-11, QP-6
#[test]
fn each_of_the_three_codes_sends_the_packet_again_at_once() {
    for reason in [NackReason::Trimmed, NackReason::TrimmedLastHop, NackReason::PsnOutOfWindow] {
        let (mut bench, qpn) = sender();
        bench.deliver(&bench.nack(qpn, 2, reason, false));
        bench.run_for(Duration::from_us(1));
        let sent = bench.sent();
        assert_eq!(sent.len(), 1);
        // The NACK told the peer's number.
        assert_eq!(
            (sent[0].line().as_str(), sent[0].at),
            ("MIDDLE 2 A RTX", ps(10_000_000 + FULL))
        );
        let packet = sent[0].packet();
        assert_eq!((packet.entropy, packet.role), (49_156, Some(Role::TrimmableRtx)));
        assert_eq!((bench.in_flight(), bench.counters().rtx_nack), (4 * 4_156, 1));
    }
}

// spec: NACK-5, NACK-11
#[test]
fn nacks_for_acknowledged_packets_and_older_copies_change_nothing() {
    let (mut bench, qpn) = sender();
    let nack = |bench: &Bench, n, rtx| bench.nack(qpn, n, NackReason::Trimmed, rtx);
    bench.deliver(&bench.sack(qpn, 0, &[2]));
    let silent = [
        (nack(&bench, 0, false), "below the cumulative PSN"),
        (nack(&bench, 2, false), "retired by a bitmap"),
        (nack(&bench, 1, true), "a retransmission that there was none of"),
    ];
    for (packet, why) in silent {
        assert_eq!(draws(&mut bench, packet), [""; 0], "{why}");
    }
    let again = nack(&bench, 1, false);
    assert_eq!(draws(&mut bench, again), ["MIDDLE 1 A RTX"]);
    assert_eq!(draws(&mut bench, again), [""; 0], "about the copy before");
    let again = nack(&bench, 1, true);
    assert_eq!(draws(&mut bench, again), ["MIDDLE 1 A RTX"]);
    assert_eq!((bench.in_flight(), bench.counters().rtx_nack), (2 * 4_156, 2));
    assert_eq!(bench.nic().drops().total(), 0);
}

// spec: NACK-9, SEG-5
#[test]
fn a_retransmission_needs_no_room_in_the_psn_window() {
    let mut bench = Bench::alone(A, |a| a.max_psn_range = 4);
    let qpn = bench.post(QpChoice::New, 20 * 4_096);
    bench.run_to(us(10));
    assert_eq!(bench.sent().len(), 4, "the PSN window is full");
    let nack = bench.nack(qpn, 3, NackReason::Trimmed, false);
    assert_eq!(draws(&mut bench, nack), ["MIDDLE 3 A RTX"]);
}

// spec: W-11, NACK-11, RTO-9
#[test]
fn packets_refused_for_lack_of_resources_go_again_after_one_timeout() {
    for reason in [NackReason::NoBitmap, NackReason::NoPacketBuffer, NackReason::NoResource] {
        let mut bench = Bench::alone(A, |a| {
            a.linear_retry_count = 0;
            a.exponential_retry_count = 1;
        });
        let qpn = bench.post(QpChoice::New, 2 * 4_096);
        bench.run_to(us(10));
        bench.sent();
        bench.deliver(&bench.nack(qpn, 1, reason, false));
        assert_eq!(bench.in_flight(), 4_156);
        bench.run_to(ps(160_000_000 + FULL - 1));
        assert!(bench.sent().is_empty(), "{reason:?}");
        bench.run_to(us(161));
        assert_eq!(bench.lines(), ["LAST 1 A RTX"], "{reason:?}");
        bench.deliver(&bench.nack(qpn, 1, reason, true));
        assert_eq!(bench.counters().qp_error, 1, "charged to the budget of one");
    }
}

// spec: W-11, QP-6
#[test]
fn a_nack_of_source_qp_0_teaches_no_number() {
    let (mut bench, qpn) = sender();
    let mut nameless = bench.nack(qpn, 1, NackReason::Trimmed, false);
    if let Body::Nack(neth) = &mut nameless.body {
        neth.source_qp = Qpn::NONE;
    }
    assert_eq!(draws(&mut bench, nameless), ["MIDDLE 1 A RTX C"]);
    let told = bench.nack(qpn, 1, NackReason::Trimmed, true);
    assert_eq!(draws(&mut bench, told), ["MIDDLE 1 A RTX"]);
}

// spec: W-11, RTO-11
#[test]
fn an_unexpected_event_is_the_end_of_the_qp() {
    let (mut bench, qpn) = sender();
    let end = bench.nack(qpn, 1, NackReason::UnexpectedEvent, false);
    assert_eq!(draws(&mut bench, end), [""; 0]);
    assert_eq!(bench.events(A, QpEventKind::QpError).len(), 1);
    assert_eq!(bench.in_flight(), 0);
}

// spec: RX-3, NACK-4, NACK-11
#[test]
fn a_sender_with_a_wider_window_than_its_receiver_gets_through() {
    let mut scenario = back_to_back().with_flow(flow(64 * 4_096, 1));
    scenario.nics[1].attributes.max_psn_range = 8;
    let first = PacketMatch { psn: Some(psn(4)), nth: Some(1), ..PacketMatch::default() };
    let ran = run(&scenario.with_fault(rule(FaultAction::Hold(Duration::from_us(2)), first)));
    assert!(ran.is_complete());
    let refused = ran.sent(B).filter(|seen| seen.line().contains("PSN_OOR_WINDOW"));
    assert!(refused.count() > 10 && ran.counters[0].rtx_nack > 10);
    assert_eq!(ran.counters[0].rto, 0);
}

// spec: NACK-1, NACK-3, NACK-4, NACK-8, DSCP-1, SW-16
#[test]
fn an_incast_is_trimmed_on_the_last_hop_and_repaired_by_nacks_alone() {
    let mut scenario = over_a_switch();
    scenario.nics.push(nic("c", 3));
    scenario.links = [0, 1, 2].map(|nic| link(nic, 3)).to_vec();
    let from_c = Flow { from: 2, ..flow(500 * 4_096, 1) };
    scenario.flows = vec![flow(500 * 4_096, 1), from_c];
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let trims = ran.counters[1].trimmed_pkts_rcvd;
    assert!(trims > 10);
    let again: u64 = [0, 2].iter().map(|nic| ran.counters[*nic].rtx_nack).sum();
    assert_eq!((trims, ran.counters[1].nack_pkts_sent), (again, again));
    assert_eq!(ran.counters[0].rto + ran.counters[2].rto, 0);
    let nacks = ran.sent(B).filter(|seen| seen.line().starts_with("NACK"));
    assert!(nacks.into_iter().all(|seen| seen.line().contains("TRIMMED_LASTHOP")));
}
