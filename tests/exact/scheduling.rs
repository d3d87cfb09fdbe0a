//! Whose packet is next.

use mrc_lab::config::{BufferAttributes, NicAttributes};
use mrc_lab::nic::{QpChoice, WorkRequest};
use mrc_lab::time::Duration;
use mrc_lab::units::Share;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::packet::{Body, Packet};
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

/// An egress pool of 12,600 bytes: room for three full packets; half of it is
/// more than one and less than two.
fn room_for_three(attributes: &mut NicAttributes) {
    attributes.egress_buffer = BufferAttributes::of(14_000);
}

/// Whose packets were sent: each QP's letter, the PSN, R for sent again.
fn letters(bench: &mut Bench, qpns: &[Qpn]) -> Vec<String> {
    let sent = bench.sent();
    let letter = |qpn| qpns.iter().zip('a'..).find(|(known, _)| **known == qpn).expect("known").1;
    let told = sent.iter().map(|seen| {
        let bth = seen.packet().bth;
        let again = if bth.retransmission { "R" } else { "" };
        format!("{}{}{again}", letter(bth.destination_qp), bth.psn.value())
    });
    told.collect()
}

/// A NACK that leaves the receiver's number unknown, so that packets go on naming
/// the sender's.
fn nack(bench: &Bench, qpn: Qpn, number: i64) -> Packet<'static> {
    let mut packet = bench.nack(qpn, number, NackReason::Trimmed, false);
    if let Body::Nack(neth) = &mut packet.body {
        neth.source_qp = Qpn::NONE;
    }
    packet
}

// Two groups, {a, b} and {c}, three packets a QP, an egress pool for three.
//
// | ns | what happens | list, turns of {a, b} | order of the turns |
// |---|---|---|---|
// | 15 | the pass | {ab} {c}, a b | a0 c0 b0, then the pool is full |
// | 169 | a0 has left | {c} {ab}, a b | |
// | 179 | a NACK of a0; {ab} is listed and keeps its place | | c1, full |
// | 336 | c0 and b0 have left | {ab} {c}, a b | |
// | 340 | a NACK of b0 | | a0R; b0 waits to be sent again, so {ab} rejoins at the head: b0R, full |
// | 503 | c1 and a0R have left: half drained | {c} {ab}, a b | |
// | 518 | 15 ns later | | c2, which was the last of {c}; a1, full |
// | 673 | b0R and c2 have left; 15 ns later | {ab}, b a | b1 a2, full |
// | ... | | {ab}, b | b2 |
// spec: SCHED-5, SCHED-6, SCHED-4, SEG-9, NACK-8
#[test]
fn the_order_of_turns_of_two_groups_three_qps_and_two_retransmissions() {
    let mut bench = sender(room_for_three);
    let a = bench.post(QpChoice::New, 3 * 4_096);
    let b = bench.post(QpChoice::New, 3 * 4_096);
    let c = post_elsewhere(&mut bench, 3 * 4_096);
    bench.run_to(ps(179_000));
    bench.deliver(&nack(&bench, a, 0));
    bench.run_to(ps(340_000));
    bench.deliver(&nack(&bench, b, 0));
    bench.run_to(us(5));
    let expected = ["a0", "c0", "b0", "c1", "a0R", "b0R", "c2", "a1", "b1", "a2", "b2"];
    assert_eq!(letters(&mut bench, &[a, b, c]), expected);
}

// spec: SCHED-6, NACK-8
#[test]
fn within_a_group_a_retransmission_waits_for_its_qps_turn() {
    let mut bench = sender(room_for_three);
    let a = bench.post(QpChoice::New, 3 * 4_096);
    let b = bench.post(QpChoice::New, 2 * 4_096);
    // a0 b0 a1 fill the pool: it is b's turn when a0 has left and is asked for.
    bench.run_to(ps(179_000));
    bench.deliver(&nack(&bench, a, 0));
    bench.run_to(us(5));
    assert_eq!(letters(&mut bench, &[a, b]), ["a0", "b0", "a1", "b1", "a0R", "a2"]);
}

// spec: SCHED-7
#[test]
fn without_groups_each_qp_has_a_window_and_a_turn_of_its_own() {
    let ungrouped = |a: &mut NicAttributes| a.qp_groups_enabled = false;
    let mut bench = sender(ungrouped);
    let [a, b] = [4, 4].map(|packets| bench.post(QpChoice::New, packets * 4_096));
    let c = post_elsewhere(&mut bench, 4 * 4_096);
    bench.run_to(us(5));
    let abc = ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"];
    assert_eq!(letters(&mut bench, &[a, b, c]), abc);
    let mut bench = sender(ungrouped);
    let [a, b] = [150, 150].map(|packets| bench.post(QpChoice::New, packets * 4_096));
    bench.run_to(us(100));
    let sent = bench.sent();
    let of = |qpn| sent.iter().filter(|seen| seen.packet().bth.destination_qp == qpn).count();
    assert_eq!((of(a), of(b), bench.in_flight()), (109, 109, 2 * 109 * 4_156));
    // Room for one QP is none for the other.
    bench.deliver(&bench.ack(a, 9));
    bench.run_to(us(110));
    let again = bench.sent();
    assert!(again.len() == 10 && again.iter().all(|s| s.packet().bth.destination_qp == a));
}

/// When so many packets have been reserved in the egress pool.
fn issued(bench: &mut Bench, packets: u64) -> u64 {
    let reserved = |bench: &Bench| bench.nic().buffers().egress[0].packets_in;
    bench.run_until(|bench| reserved(bench) >= packets).as_ps()
}

// spec: SCHED-8, QP-4
#[test]
fn any_pass_serves_what_is_listed_and_every_doorbell_has_a_pass_of_its_own() {
    let mut bench = sender(|_| ());
    bench.post(QpChoice::New, 1);
    bench.run_to(ps(5_000));
    bench.post(QpChoice::New, 1);
    assert_eq!(issued(&mut bench, 1), 15_000);
    assert_eq!(issued(&mut bench, 2), 15_000, "5 ns before its own pass");
    bench.run_to(ps(16_000));
    bench.post(QpChoice::New, 1);
    assert_eq!(issued(&mut bench, 3), 20_000, "the pass of the second serves the third");
}

// A pool full of packets of 79 bytes, one of which leaves every 1.58 ns, with
// more waiting: each pass takes as many as have left since the one before.
// spec: SCHED-8, SEG-9
#[test]
fn a_pass_that_stops_leaves_the_next_doorbells_pass_to_come() {
    let mut bench = sender(|a| {
        a.mss = 1;
        a.max_psn_range = 32_640;
    });
    let qpn = bench.post(QpChoice::New, 5_000);
    bench.run_to(ps(100_000));
    bench.post(QpChoice::Existing(qpn), 1);
    bench.run_to(ps(105_000));
    bench.post(QpChoice::Existing(qpn), 1);
    let pool = |bench: &Bench| bench.nic().buffers().egress[0];
    let left = |ns: u64| (ns * 1_000 - (DOORBELL + REQUEST + 556)) / 1_580;
    for (ns, passes) in [(114, 0), (115, 115), (119, 115), (120, 120), (200, 120)] {
        bench.run_to(ps(ns * 1_000));
        let taken = if passes > 0 { left(passes) } else { 0 };
        assert_eq!(pool(&bench).packets_out, left(ns), "{ns}");
        assert_eq!(pool(&bench).packets_in, 230_400 / 79 + taken, "{ns}");
    }
}

// spec: SCHED-3, SEG-9, RTO-11
#[test]
fn a_group_that_goes_while_it_is_first_lets_the_others_go_on() {
    let mut bench = sender(room_for_three);
    let first = bench.post(QpChoice::New, 10 * 4_096);
    let second = post_elsewhere(&mut bench, 2 * 4_096);
    // Two of the first and one of the second fill the pool.
    bench.run_to(ps(FETCHED));
    assert_eq!(bench.counters().egress_pool_stalls, 1);
    bench.close(first);
    bench.run_to(us(5));
    assert_eq!(letters(&mut bench, &[first, second]), ["a0", "b0", "b1"]);
    assert_eq!((bench.nic().holdings()[3], bench.in_flight()), (1, 0));
    bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(50));
    assert_eq!(bench.in_flight(), 109 * 4_156, "a later message starts with a whole window");
}

// Its place in the NIC goes to the next group, its place in the list to none.
// spec: SCHED-3, SCHED-5
#[test]
fn a_group_that_goes_while_it_waits_leaves_no_turn_to_the_next_one() {
    let mut bench = sender(room_for_three);
    let first = bench.post(QpChoice::New, 6 * 4_096);
    bench.run_to(ps(DOORBELL));
    let gone = post_elsewhere(&mut bench, 3 * 4_096);
    bench.close(gone);
    let next = post_elsewhere(&mut bench, 3 * 4_096);
    bench.run_to(us(5));
    let expected = ["a0", "a1", "a2", "a3", "b0", "a4", "b1", "a5", "b2"];
    assert_eq!(letters(&mut bench, &[first, next]), expected);
}

// spec: SEG-9, REL-5
#[test]
fn a_pass_that_a_pool_of_one_packet_stopped_goes_on_whatever_was_in_the_way() {
    let half = Share::from_ppm(500_000);
    let buffer = BufferAttributes { total_bytes: 12_000, shares: vec![half, half] };
    let mut bench = sender(|a| a.egress_buffer = buffer.clone());
    // 2,078 of 6,000 bytes are taken, less than half, and a full packet has no room.
    let first = bench.post(QpChoice::New, 2_000);
    bench.run_to(ps(60_000));
    post_elsewhere(&mut bench, 4_096);
    bench.run_to(ps(80_000));
    assert_eq!(bench.counters().egress_pool_stalls, 1);
    // No acknowledgement and no timer of the packet that is leaving will come.
    bench.close(first);
    bench.run_to(us(1));
    assert_eq!(order(&mut bench), [2, 9]);
}
