//! Losses found from gaps in SACKs.

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::QpChoice;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::time::Duration;
use mrc_lab::trace::{Direction, RetransmitCause};
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::qpn::Qpn;

use crate::bench::*;
use crate::lab::*;

/// A sender whose 40 packets have left, with this reorder allowance.
fn sender(allowance: u32, set: impl Fn(&mut NicAttributes)) -> (Bench, Qpn) {
    let mut bench = Bench::alone(A, |a| {
        a.sack_loss_min_retx_pkts = allowance;
        set(a);
    });
    let qpn = bench.post(QpChoice::New, 40 * 4_096);
    bench.run_to(us(10));
    assert_eq!(bench.sent().len(), 40);
    (bench, qpn)
}

/// The PSNs sent again within a few microseconds of a SACK.
fn lost(bench: &mut Bench, qpn: Qpn, cumulative: i64, listed: &[i64]) -> Vec<u32> {
    bench.deliver(&bench.sack(qpn, cumulative, listed));
    bench.run_for(Duration::from_us(4));
    let sent = bench.sent();
    let again = sent.iter().filter(|seen| seen.packet().bth.retransmission);
    again.map(|seen| seen.packet().bth.psn.value()).collect()
}

// spec: LOSS-1, LOSS-2, ACK-4, NACK-10
#[test]
fn what_lies_more_than_the_allowance_below_the_highest_listed_psn_is_lost() {
    let (mut bench, qpn) = sender(4, |_| ());
    assert_eq!(lost(&mut bench, qpn, 0, &[2, 5]), [0_u32; 0]);
    assert_eq!(bench.in_flight(), 37 * 4_156);
    bench.deliver(&bench.sack(qpn, 0, &[2, 8]));
    bench.run_for(Duration::from_us(4));
    // 1 and 3 are 7 and 5 below 8; 4 is 4 below it.
    assert_eq!(bench.lines(), ["MIDDLE 1 A RTX", "MIDDLE 3 A RTX"]);
    assert_eq!((bench.counters().rtx_sack_gap, bench.counters().rtx), (2, 2));
    assert_eq!(bench.in_flight(), 36 * 4_156, "sent again, in flight again");
}

// spec: LOSS-1
#[test]
fn the_cumulative_psn_alone_shows_no_gap() {
    let (mut bench, qpn) = sender(0, |_| ());
    assert_eq!(lost(&mut bench, qpn, 20, &[]), [0_u32; 0]);
    bench.deliver(&bench.ack(qpn, 25));
    assert_eq!(lost(&mut bench, qpn, 25, &[26]), [0_u32; 0], "nothing is missing below it");
}

// spec: LOSS-2, NACK-8
#[test]
fn lost_packets_go_ahead_of_new_data() {
    let mut bench = Bench::alone(A, |a| a.sack_loss_min_retx_pkts = 0);
    let qpn = bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(20));
    bench.sent();
    bench.deliver(&bench.sack(qpn, 0, &[2, 3, 5]));
    bench.run_for(Duration::from_us(4));
    let lines = bench.lines();
    assert_eq!(lines[..3], ["MIDDLE 1 A RTX", "MIDDLE 4 A RTX", "MIDDLE 109 A"]);
    assert_eq!(lines.len(), 2 + 4, "four were acknowledged");
}

// spec: LOSS-2, LOSS-7
#[test]
fn a_gap_queues_a_packet_at_most_once() {
    let (mut bench, qpn) = sender(2, |a| a.sack_gap_recovery_gate = false);
    assert_eq!(lost(&mut bench, qpn, 0, &[4]), [1]);
    assert_eq!(lost(&mut bench, qpn, 0, &[5]), [2]);
    assert_eq!(lost(&mut bench, qpn, 0, &[6, 7, 20]), [3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
    assert_eq!(lost(&mut bench, qpn, 0, &[21]), [18]);
}

// spec: LOSS-4
#[test]
fn during_recovery_no_gaps_are_looked_for() {
    let (mut bench, qpn) = sender(2, |_| ());
    assert_eq!(lost(&mut bench, qpn, 0, &[4]), [1]);
    bench.post(QpChoice::Existing(qpn), 20 * 4_096);
    bench.run_for(Duration::from_us(4));
    bench.sent();
    assert_eq!(lost(&mut bench, qpn, 0, &[30]), [0_u32; 0]);
    // 39 was the highest PSN when recovery began.
    assert_eq!(lost(&mut bench, qpn, 38, &[45]), [0_u32; 0]);
    assert_eq!(lost(&mut bench, qpn, 39, &[45]), [40, 41, 42]);
}

// spec: LOSS-5
#[test]
fn an_allowance_of_0_finds_any_gap_at_once() {
    let (mut bench, qpn) = sender(0, |_| ());
    assert_eq!(lost(&mut bench, qpn, 0, &[2]), [1]);
}

// spec: LOSS-5
#[test]
fn an_allowance_of_the_window_less_one_finds_none() {
    let (mut bench, qpn) = sender(63, |a| a.max_psn_range = 64);
    assert_eq!(lost(&mut bench, qpn, -1, &[20, 39]), [0_u32; 0]);
    bench.post(QpChoice::Existing(qpn), 24 * 4_096);
    bench.run_for(Duration::from_us(4));
    bench.sent();
    assert_eq!(lost(&mut bench, qpn, -1, &[63]), [0_u32; 0]);
}

// spec: LOSS-1, NACK-11
#[test]
fn a_packet_that_waits_already_is_no_new_loss() {
    let mut bench = Bench::alone(A, |a| a.sack_loss_min_retx_pkts = 0);
    let small = bench.post(QpChoice::New, 1);
    bench.post(QpChoice::Existing(small), 1);
    bench.post(QpChoice::Existing(small), 1);
    bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(20));
    bench.sent();
    // The window stays full without these 61 bytes, so the packet waits.
    bench.deliver(&bench.nack(small, 0, NackReason::Trimmed, false));
    bench.deliver(&bench.sack(small, -1, &[1, 2]));
    bench.run_for(Duration::from_us(4));
    assert_eq!((bench.sent().len(), bench.counters().rtx_sack_gap), (0, 0));
}

// spec: LOSS-2, LOSS-4, RX-6, SACK-7
#[test]
fn many_losses_in_one_window_are_all_repaired_without_a_timeout() {
    let matches = PacketMatch {
        kind: Some(Kind::Write),
        retransmission: Some(false),
        probability: 0.1,
        ..PacketMatch::default()
    };
    for gate in [true, false] {
        let scenario = back_to_back()
            .with_flow(flow(2_000 * 4_096, 1))
            .with_attributes(|a| {
                a.sack_loss_min_retx_pkts = 16;
                a.sack_gap_recovery_gate = gate;
                a.initial_ack_timeout = Duration::from_ms(1);
            })
            .with_fault(rule(FaultAction::Drop, matches.clone()));
        let ran = run(&scenario);
        assert!(ran.is_complete());
        let again = ran.packets(A, Direction::ReTx, Kind::Write);
        let by_gap = again.filter(|(_, p)| p.cause == Some(RetransmitCause::SackGap)).count();
        let faults = ran.data_sent(A).filter(|seen| seen.fault.is_some()).count();
        assert!(faults > 150 && by_gap <= faults, "{by_gap} of {faults}: nothing twice");
        if !gate {
            // Without the gate only what has no 16 packets behind it waits.
            assert!(by_gap + 4 >= faults, "{by_gap} of {faults}");
        }
    }
}

// spec: LOSS-3, SCHED-2
#[test]
fn retransmissions_of_lost_packets_take_the_next_entropy_values() {
    let (mut bench, qpn) = sender(0, |_| ());
    bench.deliver(&bench.sack(qpn, 0, &[2]));
    bench.run_for(Duration::from_us(1));
    // 40 packets took 49,152 to 49,191.
    assert_eq!(bench.sent()[0].packet().entropy, 49_192);
}
