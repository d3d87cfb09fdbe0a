//! Cumulative and selective acknowledgements, at both ends.

use mrc_lab::nic::QpChoice;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::time::Duration;
use mrc_lab::trace::QpEventKind;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::{Body, Ecn, Packet};
use mrc_lab::wire::seth::SackSubject;

use crate::bench::*;
use crate::lab::*;

fn receiver() -> Bench {
    Bench::alone(B, |_| ())
}

/// What each arrival draws; parts are of a message of 8 unless said otherwise.
fn expect(bench: &mut Bench, table: &[(Packet<'_>, &[&str], &str)]) {
    for (packet, answer, why) in table {
        assert_eq!(bench.answer(packet), *answer, "{why}");
    }
}

// spec: ACK-1, ACK-2, SACK-3, SACK-4, RX-7
#[test]
fn flags_draw_acknowledgements_in_order_ahead_and_again() {
    let mut bench = receiver();
    let part = |n| bench.part(n, 8);
    let table: [(_, &[&str], _); 8] = [
        (part(2).asking(), &["SACK -1 [2]", "ACK -1"], "nothing in order yet"),
        (part(0), &[], "no flag"),
        (part(1).again(), &["SACK 2 RTX"], "sent again, and the gap before an asking one closes"),
        (part(3).asking(), &["SACK 3", "ACK 3"], "in order"),
        (part(3).asking(), &["SACK 3", "ACK 3"], "a duplicate that asks"),
        (part(3).again(), &["SACK 3 RTX"], "a duplicate sent again"),
        (part(3).again().asking(), &["SACK 3 RTX", "ACK 3"], "both"),
        (part(4), &[], "no flag"),
    ];
    expect(&mut bench, &table);
}

// spec: ACK-2, ACK-5, ACK-10, SACK-6
#[test]
fn a_message_that_becomes_whole_draws_a_sack_and_an_ack() {
    let mut bench = receiver();
    let part = |n| bench.part(n, 3);
    let table: [(_, &[&str], _); 3] = [
        (part(2), &[], "the last one, ahead of a gap"),
        (part(0), &[], "a gap is left"),
        (part(1), &["SACK 2", "ACK 2"], "whole"),
    ];
    expect(&mut bench, &table);
    let mut bench = receiver();
    let part = |n| bench.part(n, 3);
    let table: [(_, &[&str], _); 3] = [
        (part(2).asking(), &["SACK -1 [2]", "ACK -1"], "its own ACK"),
        (part(0), &[], "a gap is left"),
        (part(1), &["SACK 2", "ACK 2"], "a second ACK when the gap closes"),
    ];
    expect(&mut bench, &table);
}

// spec: ACK-5
#[test]
fn a_last_packet_ahead_of_a_gap_draws_a_second_ack() {
    let lost = PacketMatch { psn: Some(psn(2)), nth: Some(1), ..PacketMatch::default() };
    let held = rule(FaultAction::Hold(Duration::from_us(3)), lost);
    let ran = run(&back_to_back().with_flow(flow(8 * 4_096, 1)).with_fault(held));
    assert!(ran.is_complete());
    let acks: Vec<_> = ran.sent(B).map(|s| s.line()).filter(|l| l.starts_with('A')).collect();
    assert_eq!(acks, ["ACK 1", "ACK 7"]);
}

// spec: ACK-6, SACK-9, NACK-7, W-5
#[test]
fn sacks_reflect_the_entropy_value_and_acks_take_one_of_their_own() {
    let mut bench = receiver();
    for n in 0..3 {
        let mut part = bench.part(n, 8).asking();
        part.entropy = 60_000 + n as u16;
        let answers = bench.answers(&part);
        let [sack, ack] = [0, 1].map(|i| answers[i].packet());
        assert_eq!((sack.entropy, ack.entropy), (part.entropy, 49_152 + n as u16));
        assert_eq!(answers[0].seth().map(|seth| seth.entropy), Some(part.entropy));
        assert_eq!((sack.bth.psn, ack.bth.psn), (psn(n.into()), psn(n.into())));
        assert_eq!((sack.bth.destination_qp, ack.bth.destination_qp), (SENDER_QPN, SENDER_QPN));
    }
}

// spec: W-5
#[test]
fn the_psn_of_a_sack_is_the_cumulative_one_and_its_offset_leads_to_what_drew_it() {
    let mut bench = receiver();
    let answers = bench.answers(&bench.part(5, 8).again());
    let (packet, seth) = (answers[0].packet(), answers[0].seth().expect("a SACK"));
    assert_eq!((packet.bth.psn, seth.cumulative), (psn(-1), psn(-1)));
    assert_eq!((seth.subject.offset(), packet.bth.retransmission), (Some(6), true));
    assert_eq!((seth.source_qp, seth.max_psn_range), (bench.receiving_qpn(), 8));
}

// spec: SACK-2
#[test]
fn small_packets_are_coalesced_at_1024_bytes_each() {
    let mut bench = receiver();
    let drew = (0..12).filter(|n| !bench.answer(&bench.part(*n, 40)).is_empty());
    // Four packets of 1,000 bytes count 4,096.
    assert_eq!(drew.collect::<Vec<_>>(), [3, 7, 11]);
    let ran =
        run(&back_to_back().with_flow(flow(64 * 1_500, 1)).with_attributes(|a| a.mss = 1_500));
    assert!(ran.is_complete());
    let sacks = ran.sent(B).filter(|seen| seen.line().starts_with('S'));
    // Every third passes 4,095; the last draws its own.
    assert_eq!(sacks.count(), 64 / 3 + 1);
}

// spec: SACK-2, RX-7
#[test]
fn the_count_starts_over_with_every_sack_and_counts_duplicates() {
    let mut bench = receiver();
    let part = |n| bench.part(n, 40);
    let table: [(_, &[&str], _); 8] = [
        (part(0), &[], "1,024"),
        (part(1), &[], "2,048"),
        (part(1).again(), &["SACK 1 RTX"], "its own; 0 again"),
        (part(2), &[], "1,024"),
        (part(2), &[], "2,048: a duplicate counts"),
        (part(3), &[], "3,072"),
        (part(3), &["SACK 3"], "4,096"),
        (part(4), &[], "1,024"),
    ];
    expect(&mut bench, &table);
}

// spec: SACK-5
#[test]
fn a_closed_gap_before_a_packet_that_asked_draws_one_sack() {
    let mut bench = receiver();
    let part = |n| bench.part(n, 40);
    let table: [(_, &[&str], _); 6] = [
        (part(2).asking(), &["SACK -1 [2]", "ACK -1"], "remembered"),
        (part(0), &[], "the gap is still open"),
        (part(1), &["SACK 2"], "reached: no ACK, the message is not whole"),
        (part(4), &[], "asks for nothing"),
        (part(3), &[], "nobody asked"),
        (part(5), &[], "fired once"),
    ];
    expect(&mut bench, &table);
}

// spec: SACK-7, W-10
#[test]
fn successive_sacks_report_successive_blocks_of_64_psns() {
    let mut bench = receiver();
    for n in [1, 2, 64, 70, 200] {
        bench.deliver(&bench.part(n, 300));
    }
    bench.run_to(us(1));
    bench.sent();
    let lines: Vec<_> = (0..5)
        .map(|_| {
            let sack = bench.answers(&bench.part(2, 300).again()).remove(0);
            let seth = sack.seth().expect("a SACK");
            (sack.line().replace(" RTX", ""), seth.sack_offset)
        })
        .collect();
    // Four of the five arrivals drew a SACK of the first block.
    let blocks = [("SACK -1 [64 70]", 65), ("SACK -1 [200]", 193), ("SACK -1 [1-2]", 1)];
    let expected = blocks.iter().cycle().take(5).map(|(line, at)| ((*line).to_owned(), *at));
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

// spec: W-10, SACK-7
#[test]
fn a_sack_with_nothing_held_lists_nothing_from_offset_1() {
    let mut bench = receiver();
    let answers = bench.answers(&bench.part(0, 8).asking());
    let seth = answers[0].seth().expect("a SACK");
    assert_eq!((seth.sack_offset, seth.bitmap), (1, 0));
}

// spec: W-9, SACK-9
#[test]
fn a_mark_on_any_packet_since_the_last_sack_is_reported() {
    let mut bench = receiver();
    let marked = Packet { ecn: Ecn::Ce, ..bench.part(0, 40) };
    let table: [(_, &[&str], _); 4] = [
        (marked, &[], "coalesced"),
        (bench.part(1, 40).again(), &["SACK 1 CE RTX"], "reported"),
        (bench.part(2, 40).again(), &["SACK 2 RTX"], "once"),
        (Packet { ecn: Ecn::Ce, ..bench.part(3, 40).again() }, &["SACK 3 CE RTX"], "its own"),
    ];
    expect(&mut bench, &table);
    assert_eq!(bench.counters().ecn_marked_rcvd, 2);
}

// spec: SACK-9
#[test]
fn received_bytes_and_what_is_held_are_reported() {
    let mut bench = receiver();
    let state = |bench: &mut Bench, n| {
        let answers = bench.answers(&bench.part(n, 40).again());
        let Body::Sack(_, state) = answers[0].packet().body else { panic!("a SACK") };
        (state.received_units, state.out_of_order)
    };
    // 1,000, 2,000 and 3,000 bytes in units of 256, rounded up.
    assert_eq!([0, 2, 3].map(|n| state(&mut bench, n)), [(4, 0), (8, 1), (12, 2)]);
    assert_eq!(state(&mut bench, 3), (12, 2), "a duplicate adds nothing");
    assert_eq!(state(&mut bench, 1), (16, 0));
}

// spec: QP-6, W-6, WIRE-4
#[test]
fn packets_name_the_peers_qp_only_once_a_sack_has_told_it() {
    let mut bench = Bench::alone(A, |a| a.sack_loss_min_retx_pkts = 0);
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    bench.run_to(us(150));
    let rqmsn = |packet: Packet<'_>| match packet.body {
        Body::Write { meth, .. } => (packet.bth.destination_qp, meth.rqmsn),
        _ => panic!("data"),
    };
    let sent = bench.sent();
    assert!(sent.iter().map(|s| rqmsn(s.packet())).eq((0..4).map(|n| (qpn, n))));
    // An ACK tells no number, so what is sent again still carries its own.
    bench.deliver(&bench.ack(qpn, 0));
    bench.run_to(us(200));
    let again = bench.sent();
    let lines: Vec<_> = again.iter().map(|s| s.line()).collect();
    assert_eq!(lines, ["MIDDLE 1 A RTX C", "MIDDLE 2 A RTX C", "LAST 3 A RTX C"]);
    assert!(again.iter().map(|s| rqmsn(s.packet())).eq((1..4).map(|n| (qpn, n))));
    bench.deliver(&bench.sack(qpn, 0, &[3]));
    bench.run_to(us(250));
    let known = bench.sent();
    assert_eq!(
        known.iter().map(|s| s.line()).collect::<Vec<_>>(),
        ["MIDDLE 1 A RTX", "MIDDLE 2 A RTX"]
    );
    assert!(known.iter().all(|s| rqmsn(s.packet()) == (RECEIVER_QPN, 0)));
}

// spec: ACK-7, SACK-8
#[test]
fn acknowledged_bytes_leave_the_flight_at_once_and_once() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 20 * 4_096);
    bench.run_to(us(10));
    let table = [
        (bench.sack(qpn, -1, &[3]).seth(|s| s.subject = SackSubject::data(8)), 19),
        (bench.sack(qpn, -1, &[3, 9, 10]), 17),
        (bench.sack(qpn, 3, &[]), 14),
        (bench.ack(qpn, 9), 9),
        (bench.ack(qpn, 2), 9),
        (bench.sack(qpn, 1, &[2, 12]), 8),
        (bench.ack(qpn, 19), 0),
    ];
    for (packet, left) in table {
        bench.deliver(&packet);
        assert_eq!(bench.in_flight(), left * 4_156, "{packet:?}");
    }
}

// spec: ACK-7
#[test]
fn a_copy_already_in_the_egress_queue_is_still_sent() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    // All four are fetched by then, and the third is leaving.
    bench.run_to(ps(300_000));
    bench.deliver(&bench.ack(qpn, 3));
    bench.run_to(us(1_000));
    assert_eq!(bench.lines(), ["FIRST 0 C", "MIDDLE 1 C", "MIDDLE 2 C", "LAST 3 A C"]);
    assert_eq!((bench.in_flight(), bench.counters().rto), (0, 0));
    assert_eq!(bench.counters().wqes_completed, 1);
}

// spec: ACK-7, NACK-9, NACK-11
#[test]
fn a_retired_packet_leaves_the_retransmission_queue() {
    for acknowledged in [false, true] {
        let mut bench = Bench::alone(A, |_| ());
        let small = bench.post(QpChoice::New, 1);
        let large = bench.post(QpChoice::New, 200 * 4_096);
        bench.run_to(us(20));
        bench.sent();
        // 61 + 109 x 4,156 bytes: without the 61 the window is still full.
        let nack = NackReason::Trimmed;
        assert!(bench.answer(&bench.nack(small, 0, nack, false)).is_empty());
        assert_eq!(bench.in_flight(), 109 * 4_156);
        if acknowledged {
            bench.deliver(&bench.ack(small, 0));
        }
        bench.deliver(&bench.ack(large, 1));
        bench.run_to(us(25));
        let expected: &[_] = match acknowledged {
            // The other QP's turn comes first, but its payload has to be fetched.
            false => &["ONLY 0 A RTX", "MIDDLE 109 A C", "MIDDLE 110 A C"],
            true => &["MIDDLE 109 A C", "MIDDLE 110 A C"],
        };
        assert_eq!(bench.lines(), expected, "{acknowledged}");
    }
}

// spec: ACK-9, SACK-8, DONE-1
#[test]
fn sacks_alone_never_complete_a_message() {
    let scenario = back_to_back().with_flow(flow(4 * 4_096, 1));
    let no_acks = PacketMatch { kind: Some(Kind::Ack), ..PacketMatch::default() };
    let ran = run_to(&scenario.with_fault_back(rule(FaultAction::Drop, no_acks)), us(290));
    assert_eq!(ran.events(B, QpEventKind::RecvComplete).count(), 1);
    assert_eq!(ran.events(A, QpEventKind::WqeComplete).count(), 0);
    assert_eq!((ran.counters[0].rto, ran.counters[0].sack_pkts_rcvd), (0, 4));
}

// spec: ACK-9
#[test]
fn one_ack_completes_every_message_below_it() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 10);
    for _ in 0..3 {
        bench.post(QpChoice::Existing(qpn), 10);
    }
    bench.run_to(us(1));
    bench.deliver(&bench.ack(qpn, 2));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 3);
    bench.deliver(&bench.ack(qpn, 3));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 4);
}
