//! Retransmission timers and retry budgets.

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::QpChoice;
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::QpEventKind;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::qpn::Qpn;

use crate::bench::*;
use crate::lab::*;

/// When the timers of a packet to a deaf peer expire, up to `limit` us.
fn expiries(limit: u64, set: impl Fn(&mut NicAttributes)) -> Vec<u64> {
    let mut bench = Bench::alone(A, set);
    bench.post(QpChoice::New, 1);
    let mut times = Vec::new();
    let mut rto = 0;
    while bench.world.next_instant().is_some_and(|at| at <= us(limit)) {
        bench.world.step().expect("memory carries all");
        if bench.counters().rto > rto {
            rto += 1;
            times.push(bench.world.now().as_ns());
        }
    }
    times.iter().map(|ns| ns / 1_000).collect()
}

// spec: RTO-4, RTO-5, RTO-6, RTO-12
#[test]
fn schedules() {
    // Each sending takes 1.58 ns and moves the next expiry to the next microsecond.
    let fixed = |a: &mut NicAttributes| a.fixed_rexmit_time_enable = true;
    assert_eq!(expiries(800, |_| ()), [151, 302, 453, 604, 755]);
    let doubling = |a: &mut NicAttributes| a.linear_retry_count = 0;
    assert_eq!(expiries(2_200, doubling), [301, 902, 2_103]);
    assert_eq!(
        expiries(1_300, |a| {
            doubling(a);
            fixed(a)
        }),
        [151, 302, 453, 604, 755, 906, 1_057, 1_208]
    );
    let two = |a: &mut NicAttributes| a.linear_retry_count = 2;
    assert_eq!(expiries(1_300, two), [151, 302, 603, 1_204]);
    // At least 1 us, rounded down to whole ones, and seven linear ones.
    let shortest = |a: &mut NicAttributes| a.initial_ack_timeout = Duration::from_ns(1);
    assert_eq!(expiries(14, shortest), [2, 4, 6, 8, 10, 12, 14]);
    let odd = |a: &mut NicAttributes| a.initial_ack_timeout = Duration::from_ns(2_999);
    assert_eq!(expiries(9, odd), [3, 6, 9]);
}

// spec: RTO-4
#[test]
fn expiries_fall_on_whole_microseconds() {
    let mut bench = Bench::alone(A, |_| ());
    bench.run_to(ps(123_456_789));
    bench.post(QpChoice::New, 5 * 4_096);
    assert_eq!(bench.run_until(|b| b.counters().rto > 0), us(274));
    bench.run_to(us(274));
    assert_eq!(bench.counters().rto, 5, "those of one microsecond together");
}

// spec: RTO-2, RTO-3, SEG-6
#[test]
fn an_expired_packet_leaves_the_flight_and_goes_ahead_of_new_data() {
    let mut bench = Bench::alone(A, |_| ());
    bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(150));
    assert_eq!((bench.sent().len(), bench.in_flight()), (109, 109 * 4_156));
    bench.run_to(ps(151_000_000 + 2 * FULL));
    assert_eq!(bench.lines(), ["FIRST 0 A RTX C", "MIDDLE 1 A RTX C"]);
    assert_eq!(bench.in_flight(), 109 * 4_156, "each is sent again in its own room");
}

// spec: RTO-3, RTO-1
#[test]
fn an_expiry_after_acknowledgement_does_nothing() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4 * 4_096);
    bench.run_to(us(1));
    bench.deliver(&bench.sack(qpn, 0, &[2, 3]));
    bench.run_to(us(140));
    bench.sent();
    bench.run_to(us(160));
    assert_eq!((bench.lines(), bench.counters().rto), (vec!["MIDDLE 1 A RTX".to_owned()], 1));
}

// spec: RTO-3, RTO-7
#[test]
fn a_nack_stops_the_timer_and_starts_the_schedule_again() {
    let mut bench = Bench::alone(A, |a| a.linear_retry_count = 1);
    let qpn = bench.post(QpChoice::New, 1);
    bench.run_to(us(100));
    bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, false));
    // Sent again at 100 us: timer 1 once more, then doubled.
    let rto = |n| move |b: &Bench| b.counters().rto == n;
    assert_eq!(bench.run_until(rto(1)), us(251));
    assert_eq!(bench.run_until(rto(2)), us(552));
    bench.run_to(us(600));
    bench.deliver(&bench.nack(qpn, 0, NackReason::PsnOutOfWindow, true));
    assert_eq!(bench.run_until(rto(3)), us(751));
}

// spec: RTO-7
#[test]
fn a_gap_starts_the_schedule_again() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 1;
        a.sack_loss_min_retx_pkts = 0;
    });
    let qpn = bench.post(QpChoice::New, 2 * 4_096);
    bench.run_to(us(151));
    bench.run_to(us(200));
    bench.deliver(&bench.sack(qpn, -1, &[1]));
    assert_eq!((bench.counters().rto, bench.counters().rtx_sack_gap), (2, 1));
    assert_eq!(bench.run_until(|b| b.counters().rto == 3), us(351));
}

// spec: RTO-8, RTO-11
#[test]
fn the_budget_of_timeouts_is_not_reset_by_nacks() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 2;
        a.exponential_retry_count = 1;
    });
    let qpn = bench.post(QpChoice::New, 1);
    for n in 1..=3 {
        bench.run_until(|b| b.counters().rto == n);
        bench.run_for(Duration::from_us(1));
        bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, true));
    }
    assert_eq!((bench.counters().rtx_timeout, bench.counters().qp_error), (3, 0));
    bench.run_to(us(5_000));
    assert_eq!((bench.counters().rtx_timeout, bench.counters().qp_error), (3, 1));
}

// spec: RTO-9
#[test]
fn the_budget_of_nacks_is_counted_apart() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 1;
        a.exponential_retry_count = 1;
    });
    let qpn = bench.post(QpChoice::New, 4_097);
    bench.run_until(|b| b.counters().rto == 2);
    for n in 0..2 {
        bench.run_for(Duration::from_us(1));
        bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, true));
        assert_eq!((bench.counters().rtx_nack, bench.counters().qp_error), (n + 1, 0));
    }
    // Packet 1 has a count of its own.
    bench.deliver(&bench.nack(qpn, 1, NackReason::Trimmed, true));
    assert_eq!(bench.counters().qp_error, 0);
    bench.run_for(Duration::from_us(1));
    bench.deliver(&bench.nack(qpn, 0, NackReason::TrimmedLastHop, true));
    assert_eq!(bench.counters().qp_error, 1);
    let error = bench.nic().qps().next().unwrap().error.map(|reason| reason.name());
    assert_eq!(error, Some("NACK retry budget exceeded"));
}

// spec: RTO-10
#[test]
fn an_exponential_count_of_25_means_no_budget() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 0;
        a.fixed_rexmit_time_enable = true;
    });
    let qpn = bench.post(QpChoice::New, 1);
    bench.run_to(us(60_000));
    assert!(bench.counters().rto > 300);
    for _ in 0..100 {
        bench.run_for(Duration::from_us(1));
        bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, true));
    }
    assert_eq!(bench.counters().qp_error, 0);
}

/// A sender with a budget of one timeout whose QP has failed; another QP of
/// the group waits with new data.
fn failed() -> (Bench, Qpn, Instant) {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 0;
        a.exponential_retry_count = 0;
    });
    let qpn = bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(20));
    bench.post(QpChoice::New, 2 * 4_096);
    let at = bench.run_until(|b| b.counters().qp_error == 1);
    (bench, qpn, at)
}

// spec: RTO-11, SEG-8
#[test]
fn a_qp_in_error_sends_nothing_and_its_group_goes_on() {
    let (mut bench, qpn, at) = failed();
    assert_eq!(at, us(301));
    bench.sent();
    assert_eq!(bench.in_flight(), 2 * 4_156);
    bench.run_to(us(400));
    assert_eq!(bench.lines(), ["FIRST 0 C", "LAST 1 A C"]);
    let (_, event) = bench.events(A, QpEventKind::QpError)[0];
    assert_eq!(event.local.qpn, qpn);
    bench.deliver(&bench.ack(qpn, 108));
    assert_eq!(bench.drops("qp_in_error"), 1);
    let again = bench.work(1);
    assert!(bench.post_work(QpChoice::Existing(qpn), again).is_err());
    assert_eq!(bench.events(A, QpEventKind::WqeComplete), []);
}

// spec: RTO-11
#[test]
fn packets_of_a_qp_in_error_that_wait_for_the_port_are_discarded() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 20 * 4_096);
    bench.run_to(ps(FETCHED + FULL));
    bench.deliver(&bench.nack(qpn, 0, NackReason::UnexpectedEvent, false));
    bench.run_to(us(1_000));
    assert_eq!(bench.lines(), ["FIRST 0 C", "MIDDLE 1 C"], "the second had begun");
    assert_eq!((bench.in_flight(), bench.counters().rto), (0, 0));
}

// spec: RTO-11
#[test]
fn packets_of_a_closed_qp_that_wait_for_the_port_are_discarded() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 20 * 4_096);
    bench.run_to(ps(FETCHED + FULL));
    bench.close(qpn);
    bench.run_to(us(1_000));
    assert_eq!(bench.lines(), ["FIRST 0 C", "MIDDLE 1 C"]);
    bench.deliver(&bench.ack(qpn, 1));
    assert_eq!((bench.drops("late_control"), bench.drops("unknown_qp")), (1, 0));
    assert_eq!(bench.nic().holdings(), [0; 4]);
}

// spec: RTO-11, SCHED-3
#[test]
fn a_qp_in_error_counts_as_gone_for_its_group() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 1);
    bench.run_to(us(1));
    bench.deliver(&bench.nack(qpn, 0, NackReason::UnexpectedEvent, false));
    let [sides, _, timers, groups] = bench.nic().holdings();
    assert_eq!((sides, timers, groups), (1, 0, 0));
    let next = bench.post(QpChoice::New, 1);
    bench.close(qpn);
    bench.run_to(us(2));
    assert_eq!(bench.lines(), ["ONLY 0 A C", "ONLY 0 A C"]);
    bench.deliver(&bench.ack(next, 0));
    bench.close(next);
    assert_eq!(bench.nic().holdings(), [0; 4]);
    assert_eq!(bench.counters().qp_closed, 2);
}
