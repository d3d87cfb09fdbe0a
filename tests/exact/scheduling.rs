//! Whose packet is next.

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::{QpChoice, WorkRequest};
use mrc_lab::time::Duration;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::qpn::Qpn;

use crate::bench::*;
use crate::lab::*;

/// A sender to a deaf peer; it can also post to a NIC that is not there.
fn sender(set: impl Fn(&mut NicAttributes)) -> Bench {
    Bench::alone(A, set)
}

fn post_elsewhere(bench: &mut Bench, length: u32) -> Qpn {
    let work = WorkRequest { peer: STRANGER, ..bench.work(length) };
    bench.post_work(QpChoice::New, work).expect("a good request")
}

/// The last bytes of the destinations of what was sent.
fn order(bench: &mut Bench) -> Vec<u8> {
    bench.sent().iter().map(|seen| seen.packet().destination.octets()[3]).collect()
}

// spec: SCHED-1, SCHED-5
#[test]
fn groups_take_turns_and_so_do_the_qps_of_a_group() {
    let mut bench = sender(|_| ());
    let first = bench.post(QpChoice::New, 4 * 4_096);
    let second = bench.post(QpChoice::New, 4 * 4_096);
    let third = post_elsewhere(&mut bench, 4 * 4_096);
    bench.run_to(us(2));
    let sent = bench.sent();
    let qps: Vec<_> = sent.iter().map(|seen| seen.packet().bth.destination_qp).collect();
    let [a, b, c] = [first, second, third];
    assert_eq!(qps, [a, c, b, c, a, c, b, c, a, b, a, b]);
}

// spec: SCHED-1, SCHED-4, SEG-6
#[test]
fn each_group_has_a_window_of_its_own() {
    let mut bench = sender(|_| ());
    bench.post(QpChoice::New, 150 * 4_096);
    bench.post(QpChoice::New, 50 * 4_096);
    post_elsewhere(&mut bench, 200 * 4_096);
    bench.run_to(us(100));
    let order = order(&mut bench);
    let count = |last| order.iter().filter(|peer| **peer == last).count();
    assert_eq!((count(2), count(9)), (109, 109));
}

// spec: SCHED-8, QP-4
#[test]
fn a_pass_runs_at_once_on_a_nack_and_serves_a_message_just_posted() {
    let mut bench = sender(|_| ());
    let qpn = bench.post(QpChoice::New, 4_096);
    bench.run_to(us(10));
    bench.sent();
    post_elsewhere(&mut bench, 1);
    bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, false));
    bench.run_for(Duration::from_us(1));
    // The group with a retransmission joins at the head.
    let sent: Vec<_> = bench.sent().iter().map(|s| (s.at.as_ps(), s.line())).collect();
    let at = 10_000_000 + FULL;
    let expected = [(at, "ONLY 0 A RTX"), (at + 1_580, "ONLY 0 A C")];
    assert_eq!(sent, expected.map(|(at, line)| (at, line.to_owned())));
}

// spec: NACK-8, SCHED-6
#[test]
fn a_group_that_joins_without_a_retransmission_joins_at_the_tail() {
    let mut bench = sender(|a| a.max_psn_range = 1);
    let qpn = bench.post(QpChoice::New, 2 * 4_096);
    bench.run_to(us(10));
    bench.sent();
    post_elsewhere(&mut bench, 1);
    bench.deliver(&bench.ack(qpn, 0));
    bench.run_for(Duration::from_us(1));
    assert_eq!(order(&mut bench), [9, 2]);
}

// spec: DONE-2, NACK-8
#[test]
fn a_group_with_a_rerequest_joins_at_the_head_as_with_a_retransmission() {
    let mut bench = sender(|_| ());
    let qpn = bench.post(QpChoice::New, 4_096);
    bench.run_to(us(10));
    bench.deliver(&bench.sack(qpn, 0, &[]));
    // The re-request is due at 300.015 us, 5 ns before the other group's pass.
    bench.run_to(ps(300_005_000));
    bench.sent();
    post_elsewhere(&mut bench, 1);
    bench.run_for(Duration::from_us(1));
    assert_eq!(order(&mut bench), [2, 9]);
}
