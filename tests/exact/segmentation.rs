//! Messages become packets, and the PSN and congestion windows let them go.

use mrc_lab::config::{NicAttributes, RttTimestampMode};
use mrc_lab::nic::{QpChoice, WorkRequest};
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::Flow;
use mrc_lab::time::Duration;
use mrc_lab::trace::{NodeId, QpEventKind};
use mrc_lab::units::Rate;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::packet::Body;

use crate::bench::*;
use crate::lab::*;
use crate::wiretap::Seen;

const MSS: u32 = 4_096;

/// Opcode, offset from the target, payload bytes and wire bytes.
fn shape(seen: &Seen, target: u64) -> (&'static str, u64, usize, u64) {
    let packet = seen.packet();
    let Body::Write { reth, payload, .. } = packet.body else { panic!("data") };
    (packet.bth.opcode.name(), reth.va - target, payload.len(), seen.wire_bytes())
}

// case A09
// spec: SEG-1, SEG-3, SEG-4, WIRE-1, WIRE-9, W-8
#[test]
fn a_message_is_cut_at_the_mss() {
    let mss = MSS as usize;
    let table: [(u32, &[_]); 5] = [
        (1, &[("WRITE_ONLY", 0, 1, 79)]),
        (MSS - 1, &[("WRITE_ONLY", 0, mss - 1, 4_173)]),
        (MSS, &[("WRITE_ONLY", 0, mss, 4_174)]),
        (MSS + 1, &[("WRITE_FIRST", 0, mss, 4_174), ("WRITE_LAST", 4_096, 1, 79)]),
        (2 * MSS - 1, &[("WRITE_FIRST", 0, mss, 4_174), ("WRITE_LAST", 4_096, mss - 1, 4_173)]),
    ];
    for (length, expected) in table {
        let ran = run(&back_to_back().with_flow(flow(length, 1)));
        assert!(ran.is_complete(), "{length}");
        let target = ran.end.memory[0].destination;
        let shapes: Vec<_> = ran.data_sent(A).map(|seen| shape(seen, target.va)).collect();
        assert_eq!(shapes, expected, "{length}");
        for seen in ran.data_sent(A) {
            let Body::Write { reth, .. } = seen.packet().body else { panic!("data") };
            assert_eq!((reth.dma_length, reth.rkey), (length, target.rkey));
        }
    }
}

// case A07
// spec: SEG-2, QP-7, WIRE-3, RX-8
#[test]
fn a_message_of_0_bytes_between_others_takes_exactly_one_psn() {
    let mut bench = Bench::pair(back_to_back());
    let qpn = bench.post(QpChoice::New, MSS + 1);
    for length in [0, 5, 0, 0] {
        bench.post(QpChoice::Existing(qpn), length);
    }
    bench.run_to(us(20));
    let seen = bench.seen();
    let data = seen.iter().filter(|s| s.sent && s.is_data());
    let told: Vec<_> = data
        .map(|seen| match seen.packet().body {
            Body::Write { meth, payload, .. } => (seen.line(), meth.msn, payload.len()),
            _ => panic!("data"),
        })
        .collect();
    let expected = [
        ("FIRST 0 C", 0, 4_096),
        ("LAST 1 A C", 0, 1),
        ("ONLY 2 A C", 1, 0),
        ("ONLY 3 A C", 2, 5),
        ("ONLY 4 A C", 3, 0),
        ("ONLY 5 A C", 4, 0),
    ];
    assert_eq!(told, expected.map(|(line, msn, bytes)| (line.to_owned(), msn, bytes)));
    let sizes = bench.events(B, QpEventKind::RecvComplete);
    let sizes: Vec<_> = sizes.iter().map(|(_, event)| event.wqe_bytes).collect();
    assert_eq!(sizes, [4_097, 0, 5, 0, 0].map(Some));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 5);
}

/// What is in flight when the window is full of full packets.
fn full_flight(set: impl Fn(&mut NicAttributes)) -> (usize, u64) {
    let mut bench = Bench::alone(A, set);
    bench.post(QpChoice::New, 200 * MSS);
    bench.run_to(us(100));
    (bench.sent().len(), bench.in_flight())
}

// spec: SEG-6, WIRE-9, W-3
#[test]
fn the_window_of_450000_bytes_counts_ip_datagrams() {
    assert_eq!(full_flight(|_| ()), (109, 109 * 4_156));
    let timestamped = |a: &mut NicAttributes| {
        a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp;
    };
    assert_eq!(full_flight(timestamped), (109, 109 * 4_160));
    assert_eq!(full_flight(|a| a.icrc = true), (109, 109 * 4_160));
    let both = |a: &mut NicAttributes| {
        timestamped(a);
        a.icrc = true;
    };
    assert_eq!(full_flight(both), (109, 109 * 4_164));
    // 6,428 x 70 is 40 bytes less than the window: one more goes.
    assert_eq!(full_flight(|a| a.mss = 6_368), (71, 71 * 6_428));
    // 4,500 x 100 is the window exactly: none more goes.
    assert_eq!(full_flight(|a| a.mss = 4_440), (100, 100 * 4_500));
    assert_eq!(full_flight(|a| a.data_rate = Rate::gbps(100)).1, 28 * 4_156);
}

// spec: ACK-4
#[test]
fn packets_ask_for_an_ack_when_less_than_one_packet_of_room_is_left() {
    let mut bench = Bench::alone(A, |_| ());
    bench.post(QpChoice::New, 200 * MSS);
    bench.run_to(us(100));
    let asking = bench.sent().into_iter().filter(|s| s.packet().bth.ack_request);
    let asking: Vec<_> = asking.map(|seen| seen.line()).collect();
    // The egress pool takes 55 packets, 28 more when it has drained to half, and
    // at 4.776 us the 26 that fill the window. They count from then on, so every
    // payload that arrives later asks: 68 have come by then, 69.29 ns apart.
    let expected: Vec<_> = (68..109).map(|psn| format!("MIDDLE {psn} A C")).collect();
    assert_eq!(asking, expected);
}

// spec: ACK-4
#[test]
fn with_a_window_below_4095_bytes_every_packet_asks() {
    let mut bench = Bench::alone(A, |a| {
        a.mss = 100;
        a.config_base_rtt = Duration::from_ns(54);
    });
    bench.post(QpChoice::New, 5_000);
    bench.run_to(us(10));
    let sent = bench.sent();
    assert!(sent.len() > 20 && sent.iter().all(|seen| seen.packet().bth.ack_request));
}

// spec: SEG-8, SEG-6, ACK-7
#[test]
fn a_group_with_a_full_window_waits_until_an_acknowledgement_frees_room() {
    let mut bench = Bench::alone(A, |_| ());
    let first = bench.post(QpChoice::New, 109 * MSS);
    let second = bench.post(QpChoice::New, 4 * MSS);
    bench.run_to(us(20));
    // Both QPs share the window: the second sends its four in turn.
    assert_eq!(bench.sent().len(), 109);
    assert!(bench.answer(&bench.ack(first, -1)).is_empty(), "nothing new is acknowledged");
    bench.deliver(&bench.ack(second, 3));
    bench.run_to(us(25));
    assert_eq!(
        bench.lines(),
        ["MIDDLE 105 A C", "MIDDLE 106 A C", "MIDDLE 107 A C", "LAST 108 A C"]
    );
    assert_eq!(bench.in_flight(), 109 * 4_156);
}

// spec: SEG-8, NACK-7, NACK-8
#[test]
fn a_nack_frees_room_for_its_own_packet_first() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 200 * MSS);
    bench.run_to(us(20));
    bench.sent();
    bench.deliver(&bench.nack(qpn, 5, NackReason::Trimmed, false));
    bench.run_to(us(25));
    assert_eq!(bench.lines(), ["MIDDLE 5 A RTX"]);
    assert_eq!(bench.in_flight(), 109 * 4_156);
}

// spec: SEG-8, REL-5, RTO-11
#[test]
fn closing_a_qp_frees_room_for_the_others_of_its_group() {
    let mut bench = Bench::alone(A, |_| ());
    let first = bench.post(QpChoice::New, 200 * MSS);
    bench.run_to(us(20));
    bench.post(QpChoice::New, 2 * MSS);
    bench.run_to(us(30));
    assert_eq!(bench.sent().len(), 109, "the second QP finds the window full");
    bench.close(first);
    bench.run_to(us(40));
    assert_eq!(bench.lines(), ["FIRST 0 C", "LAST 1 A C"]);
}

// spec: SEG-5, ACK-7, SACK-8
#[test]
fn only_the_cumulative_psn_opens_the_psn_window() {
    let mut bench = Bench::alone(A, |a| a.max_psn_range = 4);
    let qpn = bench.post(QpChoice::New, 20 * MSS);
    bench.run_to(us(5));
    assert_eq!(bench.lines(), ["FIRST 0 C", "MIDDLE 1 C", "MIDDLE 2 C", "MIDDLE 3 C"]);
    bench.deliver(&bench.sack(qpn, -1, &[1, 2, 3]));
    bench.run_to(us(10));
    assert_eq!((bench.lines().len(), bench.in_flight()), (0, 4_156));
    bench.deliver(&bench.sack(qpn, 2, &[3]));
    bench.run_to(us(15));
    assert_eq!(bench.lines(), ["MIDDLE 4", "MIDDLE 5", "MIDDLE 6"]);
}

// spec: SEG-5
#[test]
fn a_qp_whose_psn_window_is_full_waits_while_others_of_its_group_go_on() {
    let mut bench = Bench::alone(A, |a| a.max_psn_range = 2);
    bench.post(QpChoice::New, 10 * MSS);
    bench.run_to(us(5));
    assert_eq!(bench.lines(), ["FIRST 0 C", "MIDDLE 1 C"]);
    bench.post(QpChoice::New, 10);
    bench.run_to(us(10));
    assert_eq!(bench.lines(), ["ONLY 0 A C"]);
}

// spec: WIRE-2, WIRE-9
#[test]
fn wire_timestamps_say_when_a_packet_was_built() {
    let mut bench = Bench::alone(A, |a| a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp);
    bench.run_to(us(9_000));
    bench.post(QpChoice::New, 2 * MSS);
    bench.run_to(us(9_200));
    let stamps: Vec<_> = bench
        .sent()
        .iter()
        .map(|seen| match seen.packet().body {
            Body::Write { tseth: Some(tseth), .. } => (seen.wire_bytes(), tseth.timestamp),
            _ => panic!("a timestamp"),
        })
        .collect();
    // The payloads arrive at 9,000.085845 and 9,000.155135 us: 70,313 steps of
    // 128 ns, 4,777 beyond 2^16. Both packets are sent again at 9,151 us or a
    // little later.
    let again = (9_151_000_u64 / 128 % 65_536) as u16;
    assert_eq!(stamps[..2], [(4_178, 4_777), (4_178, 4_777)]);
    assert_eq!(stamps[2..], [(4_178, again), (4_178, again)]);
}

// spec: WIRE-2
#[test]
fn by_default_packets_carry_no_timestamp() {
    let ran = run(&back_to_back().with_flow(flow(MSS, 1)));
    let untimed = |seen: &Seen| matches!(seen.packet().body, Body::Write { tseth: None, .. });
    assert!(ran.data_sent(A).all(untimed));
}

// spec: WIRE-7
#[test]
fn the_link_runs_at_the_lower_of_both_ends_rates() {
    let mut scenario = over_a_switch();
    scenario.switches[0].attributes.data_rate = Rate::gbps(200);
    let mut bench = Bench::pair(scenario);
    bench.post(QpChoice::New, 3 * MSS);
    bench.run_to(us(10));
    let seen = bench.seen();
    let data = |node, sent| seen.iter().filter(move |s| s.node == node && s.sent == sent);
    let left: Vec<_> = data(A, true).map(|s| s.at.as_ps()).collect();
    assert_eq!(left, [1, 2, 3].map(|n| FETCHED + n * 2 * FULL));
    let switch = NodeId(2);
    let arrived = data(switch, false).filter(|s| s.is_data()).map(|s| s.at.as_ps());
    assert!(arrived.eq(left.iter().map(|at| at + DELAY)));
}

// spec: WIRE-8, RTO-1
#[test]
fn a_packets_timer_starts_when_its_serialization_ends() {
    let mut bench = Bench::alone(A, |a| {
        a.data_rate = Rate::gbps(1);
        a.config_base_rtt = Duration::from_ms(1);
    });
    bench.post(QpChoice::New, 2 * MSS);
    // At 1 Gbps a full packet takes 33.392 us: the last bits leave at 33.407
    // and 66.799 us, and the timers run out 150 us later on the next whole one.
    assert_eq!(bench.run_until(|b| b.counters().rto == 1), us(184));
    assert_eq!(bench.run_until(|b| b.counters().rto == 2), us(217));
}

// spec: QP-3, QP-4, QP-8, SEG-3
#[test]
fn the_doorbell_makes_the_qp_and_queues_the_message_in_one_step() {
    let mut bench = Bench::pair(back_to_back());
    bench.run_to(us(1));
    let qpn = bench.post(QpChoice::New, 10);
    for kind in [QpEventKind::QpCreated, QpEventKind::WqeCreated] {
        let (at, event) = bench.events(A, kind)[0];
        assert_eq!((at, event.local.qpn, event.local.ip), (us(1), qpn, bench.nic_ip(A)));
        assert_eq!((event.remote.qpn.value(), event.remote.ip), (0, bench.nic_ip(B)));
    }
    bench.run_to(us(2));
    let (sent, _) = bench.events(A, QpEventKind::SendComplete)[0];
    assert_eq!(sent, us(1) + Duration::from_ns(15));
    let (_, created) = bench.events(B, QpEventKind::QpCreated)[0];
    assert_eq!((created.remote.ip, created.remote.qpn), (bench.nic_ip(A), qpn));
    assert_eq!((created.local.ip, created.local.qpn), (bench.nic_ip(B), bench.receiving_qpn()));
}

// spec: QP-7, QP-4
#[test]
fn messages_to_two_peers_and_on_two_qps_to_one_are_in_flight_at_once() {
    let mut scenario = over_a_switch();
    scenario.nics.push(nic("c", 3));
    scenario.links = [0, 1, 2].map(|nic| link(nic, 3)).to_vec();
    scenario.flows = vec![flow(8 * MSS, 2), Flow { to: 2, ..flow(8 * MSS, 1) }];
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let peers = ran.data_sent(A).map(|seen| {
        let packet = seen.packet();
        (packet.destination.octets()[3], packet.bth.destination_qp)
    });
    let peers: Vec<_> = peers.collect();
    let [first, second, third] = [0, 1, 2].map(|i| peers[i]);
    // One packet of each group in turn, and within a group one of each QP.
    assert_eq!([first.0, second.0, third.0], [2, 3, 2]);
    assert_ne!(first.1, third.1);
    assert_eq!((peers.len(), ran.events(A, QpEventKind::WqeComplete).count()), (24, 3));
    let third_begun = ran.data_sent(A).nth(2).expect("data").at;
    assert!(ran.event_at(A, QpEventKind::WqeComplete) > third_begun);
}

// spec: QP-7
#[test]
fn messages_on_one_qp_follow_each_other_in_psn_order() {
    let one = Flow { one_qp: true, ..flow(2 * MSS + 1, 3) };
    let ran = run(&back_to_back().with_flow(one));
    assert!(ran.is_complete());
    let told: Vec<_> = ran
        .data_sent(A)
        .map(|seen| match seen.packet().body {
            Body::Write { meth, .. } => (seen.packet().bth.psn.value(), meth.msn),
            _ => panic!("data"),
        })
        .collect();
    assert_eq!(told, (0..9).map(|n| (n, n as u16 / 3)).collect::<Vec<_>>());
    assert_eq!(ran.counters[0].qp_created, 1);
    let lost = back_to_back().with_flow(Flow { one_qp: true, ..flow(2 * MSS + 1, 3) });
    let first = PacketMatch { psn: Some(psn(1)), nth: Some(1), ..PacketMatch::default() };
    let ran = run(&lost.with_fault(rule(FaultAction::Drop, first)));
    assert!(ran.is_complete());
    let done =
        ran.trace.qp_events().filter(|(_, at, e)| *at == A && e.kind == QpEventKind::WqeComplete);
    assert!(done.map(|(.., event)| event.wqe_id).eq([0, 1, 2].map(Some)));
}

// spec: QP-2, QP-3
#[test]
fn a_request_that_names_what_is_not_there_changes_nothing() {
    let mut bench = Bench::alone(A, |_| ());
    let work = bench.work(100);
    let outside = WorkRequest { local_va: work.local_va - 1, ..work };
    assert!(bench.post_work(QpChoice::New, outside).is_err());
    assert!(bench.post_work(QpChoice::Existing(SENDER_QPN), work).is_err());
    assert!(bench.post_work(QpChoice::New, WorkRequest { peer: bench.nic_ip(A), ..work }).is_err());
    let qpn = bench.post(QpChoice::New, 1);
    let elsewhere = WorkRequest { peer: STRANGER, ..work };
    assert!(bench.post_work(QpChoice::Existing(qpn), elsewhere).is_err());
    assert_eq!((bench.counters().qp_created, bench.counters().wqes_created), (1, 1));
}
