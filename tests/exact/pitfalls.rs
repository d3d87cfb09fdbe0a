//! Situations in which other transports went wrong: timers, windows, fields.

use mrc_lab::config::{AttributeError, NIC_ATTRIBUTES, NicAttributes};
use mrc_lab::nic::{Access, QpChoice};
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::rng::Rng;
use mrc_lab::scenario::{Flow, Scenario};
use mrc_lab::time::Duration;
use mrc_lab::trace::{NoTrace, QpEventKind};
use mrc_lab::wire::checksum;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;

use crate::bench::*;
use crate::lab::*;
use crate::peer::Stage;
use crate::wiretap::BTH_AT;

// case B07: an ACK that is as early as can be.
// spec: W-15, ACK-9, RTO-3
#[test]
fn a_packet_is_on_record_before_anyone_can_acknowledge_it() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4_096);
    bench.run_to(ps(FETCHED - 1));
    bench.deliver(&bench.ack(qpn, 0));
    assert_eq!(bench.drops("psn_never_sent"), 1, "it has no PSN yet");
    // Its first bit leaves now.
    bench.run_to(ps(FETCHED));
    bench.deliver(&bench.ack(qpn, 0));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1);
    bench.run_to(us(1_000_000));
    assert_eq!(bench.lines(), ["ONLY 0 A C"]);
    assert_eq!((bench.counters().rto, bench.in_flight()), (0, 0));
}

// case B07
// spec: ACK-7, SEG-5
#[test]
fn links_without_delay_cause_no_retransmission() {
    let scenario = back_to_back()
        .with_flow(flow(500 * 4_096, 2))
        .with_flow(Flow { from: 1, to: 0, ..flow(1, 100) })
        .with_attributes(|a| a.delay = Duration::ZERO);
    let ran = run(&scenario);
    assert!(ran.is_complete());
    for nic in [0, 1] {
        let counters = &ran.counters[nic];
        assert_eq!((counters.rtx, counters.rto, counters.dup_events), (0, 0, 0));
        assert_eq!(ran.drops[nic].total(), 0);
    }
}

// case C06: whoever cannot send data answers what comes, once.
// spec: ACK-2, ACK-3, ACK-10, SEG-8
#[test]
fn with_a_full_window_each_arrival_draws_one_sack_and_one_ack() {
    let mut bench = Bench::alone(B, |_| ());
    bench.post_back(200 * 4_096);
    bench.run_to(us(20));
    assert_eq!(bench.sent().len(), 109, "the window is full");
    for index in 0..20 {
        let answers = bench.answer(&bench.part(index, 100).asking());
        assert_eq!(answers, [format!("SACK {index}"), format!("ACK {index}")]);
    }
    bench.run_to(us(140));
    assert!(bench.sent().is_empty(), "nothing follows");
}

// case C10: a message of one packet between longer ones, each packet lost once.
// spec: QP-7, RX-8, DONE-1
#[test]
fn a_message_of_one_packet_between_longer_ones_completes_in_order() {
    for lost in 0..7 {
        let once = PacketMatch { psn: Some(psn(lost)), nth: Some(1), ..PacketMatch::default() };
        let mut bench = Bench::pair(back_to_back().with_fault(rule(FaultAction::Drop, once)));
        let qpn = bench.post(QpChoice::New, 3 * 4_096);
        for length in [1, 3 * 4_096] {
            bench.post(QpChoice::Existing(qpn), length);
        }
        bench.run_to(us(1_000));
        for (node, kind) in [(B, QpEventKind::RecvComplete), (A, QpEventKind::WqeComplete)] {
            let lengths: Vec<_> =
                bench.events(node, kind).iter().map(|(_, event)| event.wqe_bytes).collect();
            assert_eq!(lengths, [12_288, 1, 12_288].map(Some), "{lost}");
        }
        assert_eq!(bench.counters_of(A).rtx, 1, "{lost}");
    }
}

// case D04: each packet has a schedule and a budget of its own.
// spec: RTO-5, RTO-7, RTO-8
#[test]
fn a_packet_that_got_through_after_timeouts_leaves_nothing_behind() {
    let mut bench = Bench::alone(A, |a| {
        a.linear_retry_count = 1;
        a.exponential_retry_count = 1;
    });
    let qpn = bench.post(QpChoice::New, 1);
    for n in 0..6 {
        let start = bench.world.now().as_ps().next_multiple_of(1_000_000_000);
        if n > 0 {
            bench.run_to(ps(start));
            bench.post(QpChoice::Existing(qpn), 1);
        }
        let expired = |count| move |bench: &Bench| bench.counters().rto == count;
        // One timeout of 150 us and one of 300: all that the budget allows.
        assert_eq!(bench.run_until(expired(2 * n + 1)), ps(start + 151_000_000));
        assert_eq!(bench.run_until(expired(2 * n + 2)), ps(start + 452_000_000));
        bench.run_for(Duration::from_us(10));
        bench.deliver(&bench.ack(qpn, n as i64));
        assert_eq!(bench.events(A, QpEventKind::WqeComplete).len() as u64, n + 1);
    }
    assert_eq!((bench.counters().rtx_timeout, bench.counters().qp_error), (12, 0));
}

// case D05: a round trip of a fifth of the timeout.
// spec: RTO-1, RTO-3, SEG-5, SEG-8
#[test]
fn a_long_round_trip_causes_no_retransmission() {
    let far = || back_to_back().with_attributes(|a| a.delay = Duration::from_us(15));
    let trickle = far().with_flow(Flow { one_qp: true, depth: 1, ..flow(100, 200) });
    let stream = far().with_flow(flow(3_000 * 4_096, 1));
    for (scenario, packets) in [(trickle, 200), (stream, 3_000)] {
        let ran = run(&scenario);
        assert!(ran.is_complete());
        let counters = &ran.counters[0];
        assert_eq!((counters.write_pkts_sent, counters.rtx, counters.rto), (packets, 0, 0));
        assert_eq!(counters.completion_rerequests, 0);
    }
}

// case D06: the wait after a refusal and the retransmission timer.
// spec: W-11, RTO-3, NACK-11, RTO-7
#[test]
fn a_refused_packet_waits_for_the_later_of_two_timers() {
    for refused in [20, 100, 150] {
        let mut bench = Bench::alone(A, |_| ());
        let qpn = bench.post(QpChoice::New, 1);
        // Its retransmission timer is due at 151 us.
        bench.run_to(us(refused));
        bench.deliver(&bench.nack(qpn, 0, NackReason::NoResource, false));
        bench.sent();
        assert_eq!(bench.run_until(|b| b.counters().rtx == 1), us(refused + 150));
        assert_eq!((bench.counters().rtx_nack, bench.counters().rto), (1, 0));
        // From then on the retransmission's own timer counts.
        let next = bench.run_until(|b| b.counters().rto == 1);
        assert_eq!(next, us(refused + 150 + 151));
        assert_eq!(bench.lines().len(), 1);
    }
}

fn timeout_of(text: &str) -> Result<NicAttributes, AttributeError> {
    let mut attributes = NicAttributes::default();
    NIC_ATTRIBUTES.set(&mut attributes, "InitialAckTimeout", text)?;
    Ok(attributes)
}

// case D07: timeouts below a millisecond are what they say; 0 is refused.
// spec: RTO-4
#[test]
fn small_timeouts_work_and_none_is_refused() {
    assert!(timeout_of("0 ns").is_err());
    assert!(timeout_of("8001 ms").is_err());
    for (text, expiry) in [("200 us", 201), ("999 us", 1_000), ("1 ns", 2), ("1999 ns", 2)] {
        let set = timeout_of(text).expect("it is allowed");
        let mut bench = Bench::alone(A, |a| *a = set.clone());
        bench.post(QpChoice::New, 1);
        assert_eq!(bench.run_until(|b| b.counters().rto == 1), us(expiry), "{text}");
        let scenario = back_to_back().with_flow(flow(2 * 4_096, 1));
        let scenario = scenario.with_attributes(|a| *a = set.clone());
        let ran = run(&scenario.with_fault(lose(Kind::Write, 1)));
        assert!(ran.is_complete(), "{text}");
        assert!(ran.counters[0].rtx_timeout >= 1, "{text}");
    }
}

// case D12: at the beginning of time, with the smallest numbers.
// spec: LOSS-1, W-15, RTO-4
#[test]
fn nothing_is_subtracted_below_zero_at_the_start() {
    for allowance in [4, 512, 32_640] {
        let mut bench = Bench::alone(A, |a| a.sack_loss_min_retx_pkts = allowance);
        let qpn = bench.post(QpChoice::New, 5 * 4_096);
        bench.run_to(ps(FETCHED + 5 * FULL));
        bench.deliver(&bench.sack(qpn, -1, &[1, 2, 3, 4]));
        assert_eq!((bench.counters().rtx, bench.in_flight()), (0, 4_156), "{allowance}");
        bench.run_to(us(150));
        assert_eq!((bench.counters().rto, bench.drops("psn_never_sent")), (0, 0));
    }
    // A NACK, a close and a pause at instant 0 or a little later.
    let mut bench = Bench::alone(A, |_| ());
    bench.deliver_frame(pause(0, 0));
    let qpn = bench.post(QpChoice::New, 1);
    bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, false));
    assert_eq!(bench.drops("psn_never_sent"), 1);
    bench.close(qpn);
    bench.run_to(us(1));
    assert_eq!((bench.lines().len(), bench.nic().holdings()), (0, [0; 4]));
}

// case E03: the migration bit is sent as 0, and nobody looks at it.
// spec: W-4, W-5, WIRE-4
#[test]
fn the_migration_bit_is_sent_as_0_and_accepted_as_either() {
    const MIGRATION: u8 = 0x40;
    let mut bench = Bench::alone(B, |_| ());
    for index in 0..4 {
        let mut frame = bench.frame(&bench.part(index, 4).asking());
        frame[BTH_AT + 1] |= MIGRATION * (index as u8 % 2);
        bench.deliver_frame(frame);
        bench.run_for(Duration::from_ns(8));
        assert_eq!(bench.lines(), [format!("SACK {index}"), format!("ACK {index}")]);
    }
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 1);
    bench.run_to(us(1));
    let mut ack = bench.frame(&bench.ack(qpn, 0));
    ack[BTH_AT + 1] |= MIGRATION;
    bench.deliver_frame(ack);
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 1);
    // Every kind of packet that is sent.
    let lost = back_to_back().with_flow(flow(20 * 4_096, 1)).with_fault(trim_of(3));
    let ran = run(&lost);
    assert!(ran.is_complete() && ran.counters[1].nack_pkts_sent == 1);
    assert!(ran.seen.iter().all(|seen| seen.frame[BTH_AT + 1] == 0));
}

/// The packet with this PSN is trimmed once.
fn trim_of(number: i64) -> mrc_lab::node::link::FaultRule {
    let once = PacketMatch { psn: Some(psn(number)), nth: Some(1), ..PacketMatch::default() };
    rule(FaultAction::Trim { last_hop: false }, once)
}

/// The fields of IPv4, UDP and BTH, and of what follows in packets of `kind`:
/// where each starts in the frame, and its bytes.
fn fields(kind: Kind) -> Vec<(usize, usize)> {
    let outer = [14, 15, 22, 23].map(|at| (at, 1));
    let pairs = [16, 18, 20, 24, 34, 36, 38, 40, 44].map(|at| (at, 2));
    let bth = [(42, 1), (43, 1), (46, 1), (47, 3), (50, 1), (51, 3)];
    let rest: &[(usize, usize)] = match kind {
        Kind::Write => &[(54, 2), (56, 2), (58, 8), (66, 4), (70, 4)],
        Kind::Ack => &[(54, 1), (55, 3)],
        Kind::Sack => &[
            (54, 1),
            (55, 1),
            (56, 2),
            (58, 2),
            (60, 2),
            (62, 4),
            (66, 4),
            (70, 2),
            (72, 2),
            (74, 8),
        ],
        _ => &[(54, 2), (56, 1), (57, 1), (58, 4), (62, 4), (66, 4), (70, 4)],
    };
    let addresses = [(26, 4), (30, 4)];
    let all = outer.into_iter().chain(pairs).chain(addresses).chain(bth);
    all.chain(rest.iter().copied()).collect()
}

/// `frame` with `value` at `at`; the IPv4 header's checksum agrees if `mended`.
fn edited(frame: &[u8], at: usize, value: &[u8], mended: bool) -> Vec<u8> {
    let mut edited = frame.to_vec();
    edited[at..][..value.len()].copy_from_slice(value);
    if mended && at != 24 {
        edited[24..26].fill(0);
        let sum = checksum::ipv4(&edited[14..34]);
        edited[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    edited
}

/// Packets of 64 bytes, the sixth of which is trimmed.
fn small_packets() -> Scenario {
    back_to_back().with_attributes(|a| a.mss = 64).with_fault(trim_of(5))
}

// case E04: each field with its least, its greatest and random values.
// spec: W-14, REL-2, REL-3
#[test]
fn no_value_of_any_field_does_harm() {
    let mut rng = Rng::derive(4, "fields", 0);
    for (kind, to, from) in
        [(Kind::Write, B, A), (Kind::Ack, A, B), (Kind::Sack, A, B), (Kind::Nack, A, B)]
    {
        for (at, bytes) in fields(kind) {
            let mut trace = NoTrace;
            let mut stage = Stage::new(&small_packets(), &mut trace);
            let ear = stage.listen(to);
            let guard = vec![0xa5; 4_096];
            let before = stage.register(B, guard.clone(), Access::RemoteWrite);
            // One message is whole, so that an ACK has been heard; one is under way.
            let first = stage.message(A, B, 20 * 64);
            let qpn = stage.deliver(&first);
            let second = stage.message(A, B, 2_000 * 64);
            let behind = stage.register(B, guard.clone(), Access::RemoteWrite);
            stage.post(QpChoice::Existing(qpn), &second);
            stage.run_for(Duration::from_ns(500));
            let frame = ear.received(kind).pop().expect("one of each kind");
            let counted = |stage: &Stage<'_>| {
                let nic = stage.world.nic(to);
                nic.drops().total() + nic.counters().pkts_rcvd
            };
            for round in 0..4 {
                let value: Vec<u8> = match round {
                    0 => vec![0; bytes],
                    1 => vec![0xff; bytes],
                    _ => (0..bytes).map(|_| rng.next_u64() as u8).collect(),
                };
                for mended in [false, true] {
                    let was = counted(&stage);
                    stage.inject(from, port0(to), edited(&frame, at, &value, mended));
                    stage.run_for(Duration::ZERO);
                    assert!(counted(&stage) > was, "{kind:?} {at} {value:x?}: not counted");
                }
            }
            stage.run_for(Duration::from_us(20));
            for region in [before, behind] {
                assert_eq!(
                    stage.world.nic(B).memory(region.rkey),
                    Some(&guard[..]),
                    "{kind:?} {at}"
                );
            }
            // Whatever became of that QP, both ends serve the next one.
            let next = stage.message(A, B, 1_000);
            stage.deliver(&next);
            assert!(stage.is_placed(&next), "{kind:?} {at}");
        }
    }
}
