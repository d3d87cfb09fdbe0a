//! The PSN window against the congestion window, on clean links and with a loss.

use mrc_lab::nic::QpChoice;
use mrc_lab::time::Duration;
use mrc_lab::trace::{Direction, QpEventKind};
use mrc_lab::wire::opcode::Kind;

use crate::bench::*;
use crate::lab::*;

/// What a sender of 2,000 full packets sends whose first packet is lost and
/// whose SACK gaps never find a loss.
fn first_of_2000_lost() -> Ran {
    let scenario = back_to_back().with_flow(flow(2_000 * 4_096, 1));
    let deaf_to_gaps = scenario.with_attributes(|a| a.sack_loss_min_retx_pkts = 1_023);
    run(&deaf_to_gaps.with_fault(lose(Kind::Write, 1)))
}

// spec: SEG-5, LOSS-5, SACK-8, RTO-2
#[test]
fn a_gap_stops_the_sender_at_the_psn_window_until_the_timer() {
    let ran = first_of_2000_lost();
    assert!(ran.is_complete());
    let sent: Vec<_> = ran.data_sent(A).map(|seen| (seen.at, seen.line())).collect();
    // SACKs keep freeing the congestion window: the port never rests up to PSN 1,023.
    for (n, (at, _)) in (1..).zip(&sent[..1_024]) {
        assert_eq!(*at, ps(FETCHED + n * FULL));
    }
    // 1,024 packets of 83.48 ns take 85.5 us; then nothing leaves until the timer
    // of packet 0, whose last bit left at 0.169 us, fires on a whole microsecond.
    let stopped = sent[1_023].0;
    assert_eq!(stopped, ps(FETCHED + 85_483_520));
    let (at, line) = &sent[1_024];
    assert_eq!((*at, line.as_str()), (ps(151_000_000 + FULL), "FIRST 0 A RTX"));
    assert_eq!(sent.len(), 2_001, "nothing but packet 0 is sent again");
    let counters = &ran.counters[0];
    assert_eq!((counters.psn_window_stalls, counters.rtx_sack_gap, counters.rtx), (1, 0, 1));
    assert_eq!(counters.cwnd_stalls, 0, "there was room in the congestion window all the time");
    // The gap has closed: the next packet asks no longer than its fetch takes.
    let resumed = 151_000_000 + FULL + DELAY + SACK + DELAY + REQUEST + COMPLETION + FULL;
    assert_eq!((sent[1_025].0, sent[1_025].1.as_str()), (ps(resumed), "MIDDLE 1024"));
}

// spec: SEG-5
#[test]
fn payloads_on_their_way_count_in_the_psn_window() {
    let mut bench = Bench::alone(A, |a| a.max_psn_range = 5);
    bench.post(QpChoice::New, 20 * 4_096);
    bench.run_to(ps(DOORBELL));
    let egress = |bench: &Bench| bench.nic().buffers().egress[0];
    assert_eq!(egress(&bench).packets_in, 5, "no payload has arrived, five are on their way");
    assert_eq!(bench.counters().psn_window_stalls, 1);
    bench.run_to(us(100));
    assert_eq!(egress(&bench).packets_in, 5);
}

// spec: SEG-5
#[test]
fn a_message_posted_behind_a_full_psn_window_waits_for_it_too() {
    let mut bench = Bench::alone(A, |a| a.max_psn_range = 5);
    let qpn = bench.post(QpChoice::New, 5 * 4_096);
    bench.run_to(us(1));
    assert_eq!(bench.counters().psn_window_stalls, 0, "nothing waits");
    for _ in 0..2 {
        bench.post(QpChoice::Existing(qpn), 1);
    }
    assert_eq!(bench.counters().psn_window_stalls, 1, "it waits once");
}

// spec: SEG-8
#[test]
fn each_wait_for_room_in_the_congestion_window_is_counted_once() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 109 * 4_096);
    bench.run_to(us(20));
    assert_eq!(bench.counters().cwnd_stalls, 0, "the window is full, but nothing waits");
    bench.post(QpChoice::Existing(qpn), 100 * 4_096);
    bench.post(QpChoice::New, 1);
    assert_eq!(bench.counters().cwnd_stalls, 1);
    bench.deliver(&bench.ack(qpn, -1));
    assert_eq!(bench.counters().cwnd_stalls, 1, "it waits on");
    bench.deliver(&bench.ack(qpn, 9));
    bench.run_to(us(21));
    assert_eq!(bench.counters().cwnd_stalls, 2);
}

// case C02: the packets at the end of a window draw what the next one needs.
// spec: SEG-5, SEG-6, SEG-8, ACK-4, ACK-5, SACK-2
#[test]
fn a_window_that_is_always_full_sends_each_packet_once() {
    let clean = || over_a_switch().with_flow(flow(1_000 * 4_096, 1));
    // The PSN window of 8 packets, no congestion window near: one ACK for all.
    let narrow = run(&clean().with_attributes(|a| a.max_psn_range = 8));
    assert!(narrow.counters[0].psn_window_stalls > 100);
    // 1.5 x 50 B/ns x 166 ns = 12,450 bytes: three packets fill the window, and
    // less than one of room is left whenever a payload arrives: each packet asks.
    let tight = run(&clean().with_attributes(|a| a.config_base_rtt = Duration::from_ns(166)));
    assert!(tight.counters[0].cwnd_stalls > 100);
    for (ran, acks) in [(narrow, 1), (tight, 1_000)] {
        assert!(ran.is_complete());
        let count = |node, kind| ran.packets(node, Direction::Tx, kind).count();
        assert_eq!(
            (count(A, Kind::Write), count(B, Kind::Sack), count(B, Kind::Ack)),
            (1_000, 1_000, acks)
        );
        let sender = &ran.counters[0];
        assert_eq!((sender.rtx, sender.rto, sender.completion_rerequests), (0, 0, 0));
        assert_eq!((ran.counters[1].dup_events, ran.counters[1].out_of_order_events), (0, 0));
        assert_eq!(ran.events(A, QpEventKind::WqeComplete).count(), 1);
    }
}
