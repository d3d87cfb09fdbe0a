//! Round-trip times as the sender samples them.

use mrc_lab::config::{BufferAttributes, NicAttributes, RttTimestampMode};
use mrc_lab::nic::{QpChoice, RttStatistics};
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::Scenario;
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{Direction, RttSample};
use mrc_lab::units::Rate;
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::{Body, Packet};
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::seth::SackSubject;

use crate::bench::*;
use crate::lab::*;
use crate::wiretap::Seen;

/// A step of timestamps and service times.
const STEP: u64 = 128_000;
/// Serialization of a NACK at 400 Gbps.
const NACK: u64 = 1_560;
/// When the first full packet after a doorbell at 0 has left.
const FIRST_LEFT: u64 = FETCHED + FULL;

fn wire_timestamp(attributes: &mut NicAttributes) {
    attributes.rtt_timestamp_mode = RttTimestampMode::WireTimestamp;
}

fn samples(ran: &Ran) -> Vec<(Instant, RttSample)> {
    ran.trace.rtt_samples().map(|(at, _, sample)| (at, sample)).collect()
}

/// Each sample's PSN and picoseconds.
fn trips(ran: &Ran) -> Vec<(u32, u64)> {
    samples(ran).iter().map(|(_, sample)| (sample.psn.value(), sample.rtt.as_ps())).collect()
}

fn cc_state(seen: &Seen) -> Option<CcState> {
    match seen.packet().body {
        Body::Sack(_, cc_state) => Some(cc_state),
        _ => None,
    }
}

fn timestamp(packet: &Packet<'_>) -> Option<u16> {
    match packet.body {
        Body::Write { tseth, .. } => tseth.map(|tseth| tseth.timestamp),
        _ => None,
    }
}

/// A SACK up to `cumulative` that packet `drew` drew.
fn sack(bench: &Bench, qpn: Qpn, cumulative: i64, drew: i64) -> Packet<'static> {
    let subject = SackSubject::data(drew - cumulative);
    bench.sack(qpn, cumulative, &[]).seth(|seth| seth.subject = subject)
}

/// A SACK up to `cumulative` that names no packet: too far from it.
fn anonymous_sack(bench: &Bench, qpn: Qpn, cumulative: i64) -> Packet<'static> {
    sack(bench, qpn, cumulative, i64::MAX)
}

/// A NACK of packet 0, which is sent again at once.
fn trim_nack(bench: &Bench, qpn: Qpn, again: bool) -> Packet<'static> {
    bench.nack(qpn, 0, NackReason::Trimmed, again)
}

/// How many samples there were, and the last one in picoseconds.
fn heard(bench: &Bench) -> (u64, Option<u64>) {
    let side = bench.world.nic(A).qps().next().expect("a sending side");
    let last = side.rtt.map(|rtt: RttStatistics| rtt.last.as_ps());
    assert_eq!(side.rtt.map_or(0, |rtt| rtt.samples), bench.counters_of(A).rtt_samples);
    (bench.counters_of(A).rtt_samples, last)
}

/// A sender of `packets` full packets, all of which have left by 10 us.
fn sender(packets: u32, set: impl Fn(&mut NicAttributes)) -> (Bench, Qpn) {
    let mut bench = Bench::alone(A, set);
    let qpn = bench.post(QpChoice::New, packets * 4_096);
    bench.run_to(us(10));
    (bench, qpn)
}

// spec: RTT-1, RTT-2, RTT-3, SACK-9
#[test]
fn an_unloaded_round_trip_is_two_delays_and_a_sack() {
    let ran = run(&back_to_back().with_flow(flow(64 * 4_096, 1)));
    let trip = 2 * DELAY + SACK;
    assert!(trips(&ran).into_iter().eq((0..64).map(|n| (n, trip))));
    let sent = ran.packets(A, Direction::Tx, Kind::Write).map(|(at, _)| at);
    let taken = samples(&ran).into_iter().map(|(at, _)| at);
    assert!(taken.eq(sent.map(|at| at + Duration::from_ps(trip))), "as each SACK arrives");
    let service = ran.sent(B).filter_map(cc_state).map(|state| state.timestamp_or_service);
    assert!(service.eq([0; 64]), "a full packet alone");
    assert!(samples(&ran).iter().all(|(_, sample)| sample.by == Kind::Sack));
    assert_eq!([0, 1].map(|node: usize| ran.counters[node].rtt_samples), [64, 0]);
}

// spec: ACK-8, RTT-1
#[test]
fn a_cumulative_ack_gives_no_sample() {
    let sacks = PacketMatch { kind: Some(Kind::Sack), ..PacketMatch::default() };
    let scenario = back_to_back().with_flow(flow(64 * 4_096, 1));
    let ran = run(&scenario.with_fault_back(rule(FaultAction::Drop, sacks)));
    assert!(ran.is_complete());
    assert_eq!((ran.counters[0].ack_pkts_rcvd, ran.counters[0].rtt_samples), (1, 0));
    let (mut bench, qpn) = sender(2, |_| ());
    bench.deliver(&bench.ack(qpn, 1));
    assert_eq!(heard(&bench), (0, None));
}

/// One message of 64 packets, all of which are fetched in one go.
fn lone_message(set: fn(&mut NicAttributes)) -> Ran {
    let ran = run(&back_to_back().with_flow(flow(64 * 4_096, 1)).with_attributes(|attributes| {
        attributes.egress_buffer = BufferAttributes::of(1_000_000);
        set(attributes);
    }));
    assert!(ran.is_complete());
    ran
}

// spec: RTT-2, WIRE-2
#[test]
fn a_timestamped_sample_is_longer_by_the_wait_and_the_serialization() {
    let (local, wire) = (lone_message(|_| ()), lone_message(wire_timestamp));
    assert_eq!((trips(&local).len(), trips(&wire).len()), (64, 64));
    let sent: Vec<_> = wire.data_sent(A).collect();
    for (n, (without, with)) in (0..).zip(trips(&local).into_iter().zip(trips(&wire))) {
        assert_eq!((without.0, with.0), (n as u32, n as u32));
        // It was built when its payload had arrived, and left 4,178 bytes after
        // the one before it.
        let (built, left) = (FETCHED + n * COMPLETION, FETCHED + (n + 1) * 4_178 * 20);
        let packet = sent[n as usize];
        assert_eq!(timestamp(&packet.packet()).map(u64::from), Some(built / STEP));
        assert_eq!(packet.at, ps(left));
        let (longer, in_sender) = (with.1 - without.1, left - built);
        assert!(longer.abs_diff(in_sender) < STEP, "packet {n}: {longer} for {in_sender}");
    }
    let waited = trips(&wire)[63].1 - trips(&local)[63].1;
    assert!(waited > 7 * STEP, "the last packet waited long: {waited}");
}

/// Steps of service time that the SACK of the packet that arrived at `arrival`
/// must tell: the packet's own bytes, and what B has yet to begin sending of
/// `earlier`, at 20 ps a byte.
fn service_steps(arrival: Instant, packet_bytes: u64, earlier: &[&Seen]) -> u64 {
    let begins = |seen: &Seen| seen.at - Duration::from_ps(seen.wire_bytes() * 20);
    let waiting = earlier.iter().filter(|seen| begins(seen) >= arrival);
    let bytes = packet_bytes + waiting.map(|seen| seen.wire_bytes()).sum::<u64>();
    bytes * 20 / STEP
}

/// 200 messages of one byte: each draws 156 bytes for the 79 that it takes, so
/// that B's control queue grows.
fn small_messages() -> Scenario {
    let mut flow = flow(1, 200);
    flow.one_qp = true;
    back_to_back().with_flow(flow)
}

// spec: RTT-2, RTT-3
#[test]
fn the_wait_of_a_sack_behind_others_is_told_and_taken_off() {
    let ran = run(&small_messages());
    assert!(ran.is_complete());
    let control: Vec<_> = ran.sent(B).collect();
    let sacks: Vec<_> = ran.packets(A, Direction::Rx, Kind::Sack).map(|(at, _)| at).collect();
    let sent: Vec<_> = ran.packets(A, Direction::Tx, Kind::Write).collect();
    let mut told = Vec::new();
    for (n, (_, packet)) in (0..200).zip(&sent) {
        let left = sent[n].0;
        let arrival = left + Duration::from_ps(DELAY);
        // The SACK and the ACK of each packet before it.
        let (earlier, drawn) = control.split_at(2 * n);
        let steps = service_steps(arrival, u64::from(packet.wire_bytes), earlier);
        let state = cc_state(drawn[0]).expect("a SACK comes first");
        assert_eq!(u64::from(state.timestamp_or_service), steps, "{n}");
        let trip = sacks[n].since(left).as_ps() - steps * STEP;
        assert_eq!(trips(&ran)[n], (n as u32, trip));
        told.push(steps);
    }
    assert_eq!((told[0], told[199]), (0, 2));
}

// spec: RTT-3
#[test]
fn the_service_time_is_that_of_the_link_and_nothing_where_nothing_is_paced() {
    let told = |paced| {
        let ran = run(&back_to_back().with_flow(flow(4_096, 1)).with_attributes(|attributes| {
            (attributes.data_rate, attributes.paced) = (Rate::gbps(1), paced);
        }));
        let states: Vec<_> = ran.sent(B).filter_map(cc_state).collect();
        states.iter().map(|state| state.timestamp_or_service).collect::<Vec<_>>()
    };
    // 4,174 bytes take 33.392 us at 1 Gbit/s: 260 steps of 128 ns.
    assert_eq!((told(true), told(false)), (vec![260], vec![0]));
}

// spec: RTT-4, NACK-7
#[test]
fn a_trim_nack_samples_a_round_trip_without_service_time() {
    let first = PacketMatch { nth: Some(1), ..PacketMatch::default() };
    let trim = rule(FaultAction::Trim { last_hop: false }, first);
    let scenario = back_to_back().with_flow(flow(2 * 4_096, 1)).with_fault(trim);
    let ran = run(&scenario);
    assert_eq!(trips(&ran)[0], (0, 2 * DELAY + NACK));
    let by = samples(&ran).into_iter().map(|(_, sample)| (sample.psn.value(), sample.by));
    // The packet that is sent again gives a second sample: of another sending.
    assert!(by.eq([(0, Kind::Nack), (1, Kind::Sack), (0, Kind::Sack)]));
    // A trimmed packet has lost its timestamp.
    let ran = run(&scenario.with_attributes(wire_timestamp));
    assert!(samples(&ran).iter().all(|(_, sample)| sample.by == Kind::Sack));
    assert_eq!(ran.counters[0].rtt_samples, 2);
}

// spec: NACK-7, RTT-2, RTT-4
#[test]
fn under_wire_timestamp_a_nack_samples_by_the_timestamp_that_it_echoes() {
    let nack = |reason, echoed: fn(u16) -> u16| {
        let mut bench = Bench::alone(A, wire_timestamp);
        bench.run_to(us(3));
        let qpn = bench.post(QpChoice::New, 4_096);
        bench.run_to(us(10));
        let built = timestamp(&bench.sent()[0].packet()).expect("it carries one");
        let mut packet = bench.nack(qpn, 0, reason, false);
        if let Body::Nack(neth) = &mut packet.body {
            neth.timestamp = echoed(built);
        }
        bench.deliver(&packet);
        assert_eq!(bench.counters().rtx_nack, 1);
        heard(&bench)
    };
    // Built at 3.085 us: step 24; it is step 78.
    assert_eq!(nack(NackReason::PsnOutOfWindow, |built| built), (1, Some((78 - 24) * STEP)));
    assert_eq!(nack(NackReason::PsnOutOfWindow, |_| 0), (0, None));
    assert_eq!(nack(NackReason::Trimmed, |built| built), (0, None));
}

// spec: NACK-5, NACK-7, NACK-11, W-15
#[test]
fn what_changes_nothing_gives_no_sample() {
    let (mut bench, qpn) = sender(4, |_| ());
    bench.deliver(&anonymous_sack(&bench, qpn, 0));
    let silent = [
        (bench.nack(qpn, 0, NackReason::Trimmed, false), "a NACK of an acknowledged packet"),
        (bench.nack(qpn, 1, NackReason::Trimmed, true), "a NACK of what was not sent again"),
        (bench.nack(qpn, 4, NackReason::Trimmed, false), "a NACK of what was not sent"),
        (sack(&bench, qpn, 4, 1), "a SACK of what was not sent"),
        (bench.sack(qpn, 0, &[4, 1]), "a bitmap of what was not sent"),
        (sack(&bench, qpn, 0, 1).from(STRANGER), "a SACK of another's"),
        (sack(&bench, qpn, 0, 4), "a SACK drawn by what was not sent"),
        (sack(&bench, qpn, 0, -1), "a SACK drawn by what is before the first"),
    ];
    for (packet, why) in silent {
        bench.deliver(&packet);
        assert_eq!(heard(&bench).0, 0, "{why}");
    }
    bench.deliver(&sack(&bench, qpn, 0, 1));
    assert_eq!(heard(&bench).0, 1);
}

// spec: RTT-2, SACK-9
#[test]
fn a_late_sack_still_gives_its_sample_and_each_sending_one() {
    let (mut bench, qpn) = sender(2, |_| ());
    bench.deliver(&bench.ack(qpn, 1));
    bench.run_to(us(20));
    let late = 20_000_000 - FIRST_LEFT;
    bench.deliver(&sack(&bench, qpn, 1, 0));
    assert_eq!(heard(&bench), (1, Some(late)));
    bench.deliver(&sack(&bench, qpn, 1, 0));
    bench.deliver(&anonymous_sack(&bench, qpn, 1));
    assert_eq!(heard(&bench).0, 1);
    bench.deliver(&sack(&bench, qpn, 0, 1));
    assert_eq!(heard(&bench), (2, Some(late - FULL)), "even one that has been overtaken");
}

// spec: RTT-2
#[test]
fn a_send_time_is_kept_until_max_psn_range_packets_later() {
    let (mut bench, qpn) = sender(8, |a| a.max_psn_range = 4);
    bench.deliver(&bench.ack(qpn, 2));
    bench.run_to(us(11));
    // Packets 4, 5 and 6 have taken the places of 0, 1 and 2.
    for (drew, samples) in [(2, 0), (3, 1), (6, 2)] {
        bench.deliver(&sack(&bench, qpn, 2, drew));
        assert_eq!(heard(&bench).0, samples, "packet {drew}");
    }
}

// spec: RTT-2
#[test]
fn a_sack_ahead_of_its_packets_last_bit_gives_no_sample() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4_096);
    bench.run_to(ps(FIRST_LEFT - 1));
    bench.deliver(&sack(&bench, qpn, -1, 0));
    assert_eq!(heard(&bench), (0, None));
    bench.run_to(ps(FIRST_LEFT + 7));
    bench.deliver(&sack(&bench, qpn, -1, 0));
    assert_eq!(heard(&bench), (1, Some(7)));
}

// spec: RTT-2
#[test]
fn a_duplicate_draws_a_second_sack_but_no_second_sample() {
    let third = PacketMatch { nth: Some(3), ..PacketMatch::default() };
    let scenario = back_to_back().with_flow(flow(8 * 4_096, 1));
    let ran = run(&scenario.with_fault(rule(FaultAction::Duplicate, third)));
    assert_eq!((ran.counters[0].sack_pkts_rcvd, ran.counters[1].dup_events), (9, 1));
    assert!(trips(&ran).iter().map(|(psn, _)| *psn).eq(0..8));
}

// spec: CC-8
#[test]
fn a_packet_sent_again_once_gives_a_sample_by_the_sack_of_that_sending() {
    for mode in [RttTimestampMode::LocalDatabase, RttTimestampMode::WireTimestamp] {
        let (mut bench, qpn) = sender(1, |a| a.rtt_timestamp_mode = mode);
        bench.deliver(&trim_nack(&bench, qpn, false));
        bench.run_to(us(20));
        assert_eq!(bench.counters().rtx, 1);
        let samples = bench.counters().rtt_samples;
        bench.deliver(&sack(&bench, qpn, -1, 0));
        assert_eq!(heard(&bench).0, samples, "about the first sending");
        bench.deliver(&sack(&bench, qpn, -1, 0).again());
        assert_eq!(heard(&bench).0, samples + 1);
        if mode == RttTimestampMode::LocalDatabase {
            assert_eq!(heard(&bench).1, Some(10_000_000 - FULL));
        }
        bench.deliver(&sack(&bench, qpn, -1, 0).again());
        assert_eq!(heard(&bench).0, samples + 1);
    }
}

// spec: RTT-2, ACK-7
#[test]
fn a_copy_that_leaves_after_its_packet_is_acknowledged_has_a_send_time() {
    let (mut bench, qpn) = sender(1, |_| ());
    bench.deliver(&trim_nack(&bench, qpn, false));
    bench.deliver(&anonymous_sack(&bench, qpn, 0));
    bench.run_to(us(20));
    bench.deliver(&sack(&bench, qpn, 0, 0).again());
    assert_eq!(heard(&bench), (2, Some(10_000_000 - FULL)));
}

// spec: CC-8
#[test]
fn a_packet_sent_again_twice_gives_no_sample() {
    let (mut bench, qpn) = sender(1, |_| ());
    for (again, at) in [(false, 20), (true, 30)] {
        bench.deliver(&trim_nack(&bench, qpn, again));
        bench.run_to(us(at));
    }
    assert_eq!((bench.counters().rtx, heard(&bench).0), (2, 2), "the NACKs of two sendings");
    bench.deliver(&sack(&bench, qpn, -1, 0));
    bench.deliver(&sack(&bench, qpn, -1, 0).again());
    bench.deliver(&trim_nack(&bench, qpn, true));
    assert_eq!(heard(&bench).0, 2);
}

// spec: DONE-2, CC-8
#[test]
fn a_completion_rerequest_gives_no_sample() {
    for sent_again in [false, true] {
        let (mut bench, qpn) = sender(1, |_| ());
        if sent_again {
            bench.deliver(&trim_nack(&bench, qpn, false));
            bench.run_to(us(20));
        }
        bench.deliver(&anonymous_sack(&bench, qpn, 0));
        bench.run_to(us(310));
        let counters = bench.counters();
        assert_eq!((counters.completion_rerequests, counters.rtx), (1, u64::from(sent_again)));
        // Its SACK looks like that of the packet's one retransmission.
        bench.deliver(&sack(&bench, qpn, 0, 0).again());
        assert_eq!(heard(&bench).0, counters.rtt_samples);
        // That of a first sending which was the only one may still come.
        bench.deliver(&sack(&bench, qpn, 0, 0));
        assert_eq!(heard(&bench).0, 1);
    }
}

// spec: RTT-1, SCHED-3
#[test]
fn operators_see_the_samples_of_a_group_while_it_lives() {
    let (mut bench, qpn) = sender(2, |_| ());
    let other = bench.post(QpChoice::New, 4_096);
    bench.run_to(us(20));
    for drew in [0, 1] {
        bench.deliver(&sack(&bench, qpn, -1, drew));
    }
    let first = Duration::from_ps(20_000_000 - FIRST_LEFT);
    let second = first.saturating_sub(Duration::from_ps(FULL));
    let sum = first + second;
    let expected = RttStatistics { samples: 2, min: second, max: first, sum, last: second };
    assert!(bench.nic().qps().all(|info| info.rtt == Some(expected)));
    // A QP in the error state has left the group.
    bench.deliver(&bench.nack(other, 0, NackReason::UnexpectedEvent, false));
    let rtts = bench.nic().qps().map(|info| (info.local.qpn, info.rtt));
    assert!(rtts.into_iter().all(|(side, rtt)| rtt.is_some() == (side == qpn)));
    let closed = bench.world.with_nic(A, |nic, ctx| nic.close_qp(ctx, qpn));
    assert_eq!(closed.and_then(|info| info.rtt), Some(expected));
    bench.post(QpChoice::New, 4_096);
    assert!(bench.nic().qps().all(|info| info.rtt.is_none()));
}
