//! What a receiving side does with data, good and bad.

use mrc_lab::config::RttTimestampMode;
use mrc_lab::nic::{Access, QpChoice, WorkRequest};
use mrc_lab::scenario::Flow;
use mrc_lab::time::Duration;
use mrc_lab::trace::{NodeId, QpEventKind};
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::{Body, Ecn, Packet};
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::role::Role;
use mrc_lab::wire::seth::SackSubject;
use mrc_lab::wire::trim::{TrimIpLength, trim};
use mrc_lab::wire::tseth::Tseth;

use crate::bench::*;
use crate::lab::*;

fn receiver() -> Bench {
    Bench::alone(B, |_| ())
}

/// Where the BTH starts in a frame.
const BTH: usize = 14 + 20 + 8;

// spec: QP-2, W-4
#[test]
fn known_but_unsupported_opcodes_are_dropped_and_counted() {
    let mut bench = receiver();
    for (n, opcode) in (1..).zip([0xc9, 0xcb, 0xd8, 0xd9]) {
        let mut frame = bench.frame(&bench.part(0, 1).asking());
        frame[BTH] = opcode;
        bench.deliver_frame(frame);
        assert_eq!(bench.drops("drop_unsupported_opcode"), n, "{opcode:#x}");
    }
    bench.run_to(us(1));
    assert_eq!((bench.counters().qp_created, bench.sent().len()), (0, 0));
    assert_eq!(bench.written(0, PART), [0; PART]);
}

// spec: QP-5, QP-6, W-6, RX-2, RX-6
#[test]
fn whichever_packet_comes_first_creates_the_receiving_side() {
    for first in 0..4 {
        let mut bench = receiver();
        bench.deliver(&bench.part(first, 4));
        assert_eq!(bench.counters().qp_created, 1);
        let answer = (0..4).filter(|n| *n != first).map(|n| bench.answer(&bench.part(n, 4)));
        assert_eq!(answer.last().unwrap().last().unwrap(), "ACK 3", "{first}");
        assert_eq!(bench.counters().qp_created, 1, "C packets of one QP match each other");
        assert_eq!(bench.counters().messages_rcvd, 1);
    }
}

// spec: QP-6, W-6, RX-2, QP-8
#[test]
fn packets_with_and_without_the_receivers_number_reach_the_same_side() {
    let mut bench = receiver();
    bench.deliver(&bench.part(0, 3));
    let qpn = bench.receiving_qpn();
    bench.deliver(&bench.part(2, 3).to(qpn));
    let answer = bench.answer(&bench.part(1, 3));
    assert_eq!(answer, ["SACK 2", "ACK 2"]);
    assert_eq!(bench.written(PART, PART), part_bytes(1));
}

// spec: W-6, ACK-1
#[test]
fn rqmsn_tells_the_first_psn_around_the_wrap() {
    let mut bench = receiver();
    let late = bench.part(3, 8).bth(|bth| bth.psn = psn(1)).asking();
    assert_eq!(bench.answer(&late), ["SACK -3 [1]", "ACK -3"]);
}

// case A14: two NICs, one QP number, one receiver.
// spec: QP-6, QP-8, W-6, REL-3
#[test]
fn the_same_qp_number_at_two_senders_makes_two_qps() {
    let mut scenario = over_a_switch();
    // A node's random stream derives from its name: these two draw the same numbers.
    scenario.nics.push(nic("a", 3));
    scenario.links = [0, 1, 2].map(|nic| link(nic, 3)).to_vec();
    let lose = |nth| lose(Kind::Sack, nth);
    scenario.links[1].faults[1] = vec![lose(1), lose(2)];
    let back = Flow { from: 2, ..flow(20 * 4_096, 1) };
    scenario.flows = vec![flow(20 * 4_096, 1), back];
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let named = |node| ran.data_sent(node).next().expect("data").packet().bth.destination_qp;
    assert_eq!(named(A), named(NodeId(2)), "the test needs equal numbers");
    let created = ran.trace.qp_events();
    let created = created.filter(|(_, at, e)| *at == B && e.kind == QpEventKind::QpCreated);
    assert_eq!(created.count(), 2);
    assert_eq!((ran.counters[1].out_of_order_events, ran.counters[1].dup_events), (0, 0));
    assert_eq!(ran.drops[1].total(), 0);
}

// spec: RX-2, REL-3
#[test]
fn data_for_no_qp_or_from_a_stranger_changes_nothing() {
    let mut bench = receiver();
    assert!(bench.answer(&bench.part(0, 2).to(RECEIVER_QPN)).is_empty());
    assert_eq!((bench.drops("unknown_qp"), bench.counters().qp_created), (1, 0));
    bench.deliver(&bench.part(0, 2));
    let qpn = bench.receiving_qpn();
    let stranger = bench.part(1, 2).to(qpn).from(STRANGER).asking();
    assert!(bench.answer(&stranger).is_empty());
    assert_eq!(bench.drops("bad_source"), 1);
    assert_eq!(bench.written(PART, PART), [0; PART]);
    assert_eq!(bench.answer(&bench.part(1, 2)), ["SACK 1", "ACK 1"]);
}

// spec: RX-7, W-14
#[test]
fn a_psn_before_the_first_is_no_duplicate_and_draws_nothing() {
    let mut bench = receiver();
    bench.answer(&bench.part(0, 4));
    let before = bench.part(1, 4).asking().bth(|bth| bth.psn = psn(-1));
    let before = before.to(bench.receiving_qpn());
    assert_eq!(bench.answer(&before), [""; 0]);
    assert_eq!((bench.drops("psn_before_first"), bench.counters().dup_events), (1, 0));
    assert_eq!(bench.written(PART, PART), [0; PART]);
}

// spec: RX-3, NACK-4, NACK-6
#[test]
fn a_psn_beyond_the_receivers_own_window_is_dropped_and_nacked() {
    let mut bench = Bench::alone(B, |a| a.max_psn_range = 4);
    assert!(bench.answer(&bench.part(0, 8)).is_empty());
    assert!(bench.answer(&bench.part(4, 8)).is_empty(), "four beyond the cumulative PSN 0");
    assert_eq!(bench.answer(&bench.part(5, 8).asking()), ["NACK 5 PSN_OOR_WINDOW"]);
    assert_eq!(bench.written(5 * PART, PART), [0; PART]);
    assert_eq!(bench.drops("psn_out_of_window"), 1);
    bench.deliver(&bench.part(1, 8));
    assert_eq!(bench.answer(&bench.part(5, 8).asking()), ["SACK 1 [4-5]", "ACK 1"]);
}

// spec: RX-3, RX-4, NACK-2, NACK-3
#[test]
fn the_checks_run_in_order_window_then_trim_then_duplicate() {
    let mut bench = Bench::alone(B, |a| a.max_psn_range = 4);
    bench.deliver(&bench.part(0, 8));
    let trimmed = |bench: &Bench, n| bench.part(n, 8).trimmed(Role::Trimmed).asking();
    let table = [
        (5, "NACK 5 PSN_OOR_WINDOW", 0, "beyond the window"),
        (1, "NACK 1 TRIMMED", 1, "next"),
        (3, "NACK 3 TRIMMED", 2, "out of order"),
        (0, "NACK 0 TRIMMED", 3, "received already"),
    ];
    for (n, answer, trims, why) in table {
        assert_eq!(bench.answer(&trimmed(&bench, n)), [answer], "{why}");
        assert_eq!(bench.counters().trimmed_pkts_rcvd, trims, "{why}");
    }
    assert_eq!((bench.counters().dup_events, bench.counters().out_of_order_events), (0, 0));
    assert_eq!(bench.counters().write_pkts_rcvd, 1);
}

// spec: RX-4, NACK-1
#[test]
fn trims_draw_nacks_under_wire_timestamps_too() {
    let mut bench = Bench::alone(B, |a| a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp);
    let trimmed = bench.part(0, 1).trimmed(Role::Trimmed).bth(|bth| bth.timestamp_present = true);
    let answers = bench.answers(&trimmed);
    let Body::Nack(neth) = answers[0].packet().body else { panic!("a NACK") };
    assert_eq!((answers[0].line().as_str(), neth.timestamp), ("NACK 0 TRIMMED", 0));
}

// spec: NACK-7, RX-3
#[test]
fn a_nack_echoes_the_timestamp_of_a_packet_that_still_has_it() {
    let mut bench = Bench::alone(B, |a| {
        a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp;
        a.max_psn_range = 4;
    });
    let mut beyond = bench.part(9, 10).bth(|bth| bth.timestamp_present = true);
    if let Body::Write { tseth, .. } = &mut beyond.body {
        *tseth = Some(Tseth { timestamp: 4_711 });
    }
    let answers = bench.answers(&beyond);
    let Body::Nack(neth) = answers[0].packet().body else { panic!("a NACK") };
    assert_eq!(neth.timestamp, 4_711);
}

// spec: RX-5, RX-6
#[test]
fn payload_is_written_at_once_in_order_or_not() {
    let mut bench = receiver();
    for (n, out_of_order) in [(2, 1), (5, 2), (0, 2), (4, 3)] {
        bench.deliver(&bench.part(n, 6));
        assert_eq!(bench.written(n as usize * PART, PART), part_bytes(n));
        assert_eq!(bench.counters().out_of_order_events, out_of_order, "{n}");
    }
    bench.run_to(us(1));
    bench.sent();
    assert_eq!(bench.answer(&bench.part(1, 6).asking()), ["SACK 2 [4-5]", "ACK 2"]);
    assert_eq!(bench.written(3 * PART, PART), [0; PART]);
}

// spec: RX-7, SACK-9
#[test]
fn a_duplicate_is_counted_and_neither_written_nor_reported() {
    let mut bench = receiver();
    bench.deliver(&bench.part(0, 4));
    bench.deliver(&bench.part(2, 4));
    for (dups, n) in (1..).zip([0, 2]) {
        let mut other = bench.part(n, 4).asking();
        if let Body::Write { payload, .. } = &mut other.body {
            *payload = part_bytes(9);
        }
        let answers = bench.answers(&other);
        assert_eq!(bench.written(n as usize * PART, PART), part_bytes(n));
        let Body::Sack(_, state) = answers[0].packet().body else { panic!("a SACK") };
        assert_eq!(state.received_units, 2_000_u32.div_ceil(256), "two packets' bytes");
        assert_eq!(answers[1].line(), "ACK 0");
        assert_eq!(bench.counters().dup_events, dups);
    }
    assert_eq!(bench.counters().out_of_order_events, 1);
}

// spec: RX-8, DONE-1
#[test]
fn the_host_is_told_when_the_last_gap_before_the_last_packet_closes() {
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut bench = receiver();
        for (n, told) in order.into_iter().zip([0, 0, 1]) {
            bench.run_for(Duration::from_us(1));
            bench.deliver(&bench.part(n, 3));
            assert_eq!(bench.events(B, QpEventKind::RecvComplete).len(), told, "{order:?}");
        }
        let (at, event) = bench.events(B, QpEventKind::RecvComplete)[0];
        assert_eq!((at, event.wqe_bytes), (us(3), Some(3 * PART as u64)));
        for n in 0..3 {
            assert_eq!(bench.written(n as usize * PART, PART), part_bytes(n));
        }
    }
}

// spec: REL-2, W-14
#[test]
fn a_write_outside_its_region_writes_nothing_and_is_nacked() {
    let mut bench = receiver();
    bench.deliver(&bench.part(0, 4));
    let end = bench.target.va + bench.target.length;
    let (va, rkey) = (bench.target.va, bench.target.rkey);
    let bad = [
        ("another key", va, RKey(rkey.0 ^ 1)),
        ("below", va - 1, rkey),
        ("across the end", end - PART as u64 + 1, rkey),
        ("beyond", end, rkey),
        ("around the top", u64::MAX, rkey),
    ];
    for (n, (why, va, rkey)) in (1..).zip(bad) {
        let packet = bench.part(1, 4).asking().reth(|reth| (reth.va, reth.rkey) = (va, rkey));
        assert_eq!(bench.answer(&packet), ["NACK 1 UNEXP_EVENT"], "{why}");
        assert_eq!(bench.drops("remote_access"), n, "{why}");
    }
    let length = bench.target.length as usize;
    assert!(bench.written(PART, length - PART).iter().all(|byte| *byte == 0));
    assert_eq!(bench.answer(&bench.part(1, 4).asking()), ["SACK 1", "ACK 1"], "still a gap");
}

// spec: REL-2
#[test]
fn a_region_for_local_use_is_not_for_peers() {
    let mut bench = Bench::alone(B, |_| ());
    let local = bench
        .world
        .with_nic(B, |nic, ctx| nic.register_memory(ctx, vec![5; 2 * PART], Access::Local));
    let write = bench.part(0, 1).reth(|reth| (reth.va, reth.rkey) = (local.va, local.rkey));
    assert_eq!(bench.answer(&write), ["NACK 0 UNEXP_EVENT"]);
    assert_eq!(bench.nic().memory(local.rkey), Some(&[5; 2 * PART][..]));
}

// spec: REL-2, W-11, RTO-11
#[test]
fn a_violation_puts_the_senders_qp_into_the_error_state() {
    let mut bench = Bench::pair(back_to_back());
    let good = bench.work(10_000);
    let wrong_key = WorkRequest { rkey: RKey(good.rkey.0 ^ 1), ..good };
    let qpn = bench.post_work(QpChoice::New, wrong_key).unwrap();
    bench.post_work(QpChoice::New, good).unwrap();
    bench.run_to(us(2_000));
    let errors = bench.events(A, QpEventKind::QpError);
    assert_eq!(errors.iter().map(|(_, e)| e.local.qpn).collect::<Vec<_>>(), [qpn]);
    let info = bench.world.nic(A).qps().find(|qp| qp.local.qpn == qpn).unwrap();
    assert_eq!(info.error.map(|reason| reason.name()), Some("remote access error"));
    // Its third packet was still waiting to be sent and is discarded.
    assert_eq!(bench.world.nic(B).drops().of("remote_access"), 2);
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1, "the other QP's message");
    assert_eq!((bench.in_flight(), bench.counters_of(A).rtx), (0, 0));
}

// spec: REL-2, SEG-2
#[test]
fn a_write_of_0_bytes_checks_no_address() {
    let mut bench = receiver();
    let mut nothing = bench.part(0, 1).reth(|reth| {
        (reth.va, reth.rkey, reth.dma_length) = (0, RKey(1), 0);
    });
    if let Body::Write { payload, .. } = &mut nothing.body {
        *payload = &[];
    }
    assert_eq!(bench.answer(&nothing), ["SACK 0", "ACK 0"]);
    assert_eq!(bench.drops("remote_access"), 0);
}

/// What is wrong with a frame: a byte that is set, and the counter for it.
const FAULTS: [(usize, u8, &str); 8] = [
    (5, 0xff, "other_mac"),
    (14 + 16, 11, "drop_ip_checksum"),
    (14 + 20 + 3, 0, "drop_udp_port"),
    (14 + 20 + 5, 9, "drop_udp_length"),
    (14 + 20 + 7, 1, "drop_udp_checksum"),
    (BTH + 1, 0x10, "drop_bth_pad"),
    (BTH + 1, 0x01, "drop_bth_version"),
    (BTH, 0x11, "drop_unknown_opcode"),
];

// spec: W-14, W-2
#[test]
fn each_kind_of_broken_frame_has_its_counter_and_changes_nothing() {
    let mut bench = receiver();
    for (byte, value, cause) in FAULTS {
        let mut frame = bench.frame(&bench.part(0, 1).asking());
        frame[byte] = value;
        bench.deliver_frame(frame);
        assert_eq!(bench.drops(cause), 1, "{cause}");
    }
    for length in 0..14 + 60 {
        let mut frame = bench.frame(&bench.part(0, 1).asking());
        frame.truncate(length);
        bench.deliver_frame(frame);
    }
    let too_long = bench.part(0, 1).reth(|reth| reth.dma_length = (1 << 31) + 1);
    bench.deliver(&too_long);
    let misfit = bench.part(1, 3).reth(|reth| reth.dma_length = 10);
    bench.deliver(&misfit);
    assert_eq!((bench.drops("drop_message_length"), bench.drops("drop_data_length")), (1, 1));
    bench.run_to(us(1));
    assert_eq!(bench.nic().drops().total(), 8 + 74 + 2);
    assert_eq!((bench.counters().pkts_rcvd, bench.sent().len()), (0, 0));
    assert_eq!(bench.nic().holdings(), [0; 4]);
}

// spec: W-7, W-14, RX-2
#[test]
fn reserved_qp_numbers_create_nothing() {
    let mut bench = receiver();
    for number in 0..3 {
        let reserved = Qpn::masked(number);
        bench.deliver(&bench.part(0, 1).bth(|bth| bth.destination_qp = reserved));
    }
    assert_eq!((bench.drops("reserved_qp"), bench.counters().qp_created), (3, 0));
}

// spec: W-16, NACK-2
#[test]
fn a_trimmed_packet_may_name_its_original_size_or_what_is_left() {
    let mut bench = receiver();
    let rewritten = bench.frame(&bench.part(0, 2).trimmed(Role::Trimmed));
    let mut kept = bench.frame(&bench.part(1, 2));
    let codepoint = bench.format.codepoints.trimmed_last_hop;
    trim(&mut kept, codepoint, TrimIpLength::Keep).unwrap();
    assert_eq!((rewritten.len(), kept.len()), (58, 58));
    assert_ne!(rewritten[14 + 2..14 + 4], kept[14 + 2..14 + 4], "the total lengths");
    for frame in [rewritten, kept] {
        bench.deliver_frame(frame);
    }
    bench.run_to(us(1));
    assert_eq!(bench.lines(), ["NACK 0 TRIMMED", "NACK 1 TRIMMED_LASTHOP"]);
}

// spec: W-17
#[test]
fn ethernet_padding_is_cut_off() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 1);
    bench.run_to(us(1));
    let mut frame = bench.frame(&bench.ack(qpn, 0));
    frame.resize(60, 0xaa);
    bench.deliver_frame(frame);
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1);
}

// spec: W-15
#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing_and_are_counted() {
    let mut bench = Bench::alone(A, |a| a.sack_loss_min_retx_pkts = 0);
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    bench.run_to(us(1));
    bench.sent();
    let nack = NackReason::Trimmed;
    let bad = [
        bench.ack(qpn, 4),
        bench.ack(qpn, -2),
        bench.ack(qpn, 1 << 23),
        bench.sack(qpn, 4, &[]),
        bench.sack(qpn, -2, &[]),
        bench.sack(qpn, 3, &[4]),
        bench.sack(qpn, 0, &[1, 2, 4]),
        bench.sack(qpn, 0, &[2]).seth(|seth| seth.sack_offset = i16::MAX),
        bench.nack(qpn, 4, nack, false),
        bench.nack(qpn, -1, nack, false),
    ];
    for (n, packet) in (1..).zip(bad) {
        assert!(bench.answer(&packet).is_empty(), "{packet:?}");
        assert_eq!(bench.drops("psn_never_sent"), n, "{packet:?}");
    }
    let strangers = [
        bench.ack(qpn, 3).from(STRANGER),
        bench.sack(qpn, 3, &[]).from(STRANGER),
        bench.nack(qpn, 0, nack, false).from(STRANGER),
    ];
    for (n, packet) in (1..).zip(strangers) {
        assert!(bench.answer(&packet).is_empty());
        assert_eq!(bench.drops("bad_source"), n);
    }
    let answer = bench.sack(qpn, 3, &[]).seth(|s| s.subject = SackSubject::Probe { probe_id: 1 });
    assert!(bench.answer(&answer).is_empty());
    assert_eq!(bench.drops("unexpected_probe_response"), 1, "nothing here sends probes");
    assert_eq!(bench.in_flight(), 4 * 4_156);
    let info = bench.nic().qps().next().unwrap();
    assert_eq!((info.messages, info.beyond_cumulative, info.remote.qpn), (1, 4, Qpn::NONE));
    assert_eq!(info.retransmissions.total(), 0);
}

// spec: REL-3, RX-2
#[test]
fn control_packets_for_no_qp_are_counted() {
    let mut bench = Bench::alone(A, |_| ());
    bench.deliver(&bench.ack(SENDER_QPN, 0));
    assert_eq!(bench.drops("unknown_qp"), 1);
    let mut foreign: Packet<'_> = bench.ack(SENDER_QPN, 0);
    foreign.destination = STRANGER;
    foreign.ecn = Ecn::Ect1;
    bench.deliver(&foreign);
    assert_eq!(bench.drops("other_ip"), 1);
}
