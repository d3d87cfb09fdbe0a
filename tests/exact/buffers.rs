//! The NIC's buffers: what fills them, what stops and starts again, what is dropped.

use mrc_lab::config::{BufferAttributes, NicAttributes, QueueScheduling, RttTimestampMode};
use mrc_lab::nic::{PoolCounters, QpChoice, WorkRequest};
use mrc_lab::time::Duration;
use mrc_lab::units::{Rate, Share};
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::packet::{Body, Packet};
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::role::{Codepoints, Role};

use crate::bench::*;
use crate::lab::*;

const DATA: usize = 0;
const CONTROL: usize = 1;
/// Bytes on the wire of a full packet and of a hand-made part.
const PACKET: u64 = 4_174;
const CHARGE: u64 = PART as u64 + 78;

fn egress(bench: &Bench, class: usize) -> PoolCounters {
    bench.nic().buffers().egress[class]
}

fn ingress(bench: &Bench, class: usize) -> PoolCounters {
    bench.nic().buffers().ingress[class]
}

/// A sender of 200 full packets to a deaf peer.
fn sender(set: impl Fn(&mut NicAttributes)) -> (Bench, Qpn) {
    let mut bench = Bench::alone(A, set);
    let qpn = bench.post(QpChoice::New, 200 * 4_096);
    (bench, qpn)
}

// The egress pool.

// spec: SEG-7, PB-8, PB-9, PCIE-4
#[test]
fn packets_are_reserved_from_the_fetch_until_their_last_bit_has_left() {
    let (mut bench, _) = sender(|_| ());
    assert_eq!(egress(&bench, DATA).size_bytes, 230_400);
    assert_eq!(egress(&bench, CONTROL).size_bytes, 25_600);
    bench.run_to(ps(DOORBELL - 1));
    assert_eq!(egress(&bench, DATA).used_bytes, 0);
    bench.run_to(ps(DOORBELL));
    assert_eq!(egress(&bench, DATA).used_bytes, 55 * PACKET, "and nothing has arrived");
    assert_eq!(bench.counters().egress_pool_stalls, 1);
    bench.run_to(ps(FETCHED + FULL - 1));
    assert_eq!(egress(&bench, DATA).used_bytes, 55 * PACKET);
    bench.run_to(ps(FETCHED + FULL));
    assert_eq!(egress(&bench, DATA).used_bytes, 54 * PACKET);
}

// spec: SEG-9, SCHED-8
#[test]
fn a_stopped_pass_goes_on_15_ns_after_the_drain_through_half() {
    let (mut bench, _) = sender(|_| ());
    // 115,200 bytes hold 27 packets: the 28th departure drains to half.
    let taken = |packets| move |b: &Bench| egress(b, DATA).packets_in > packets;
    assert_eq!(bench.run_until(taken(55)), ps(FETCHED + 28 * FULL + 15_000));
    assert_eq!((egress(&bench, DATA).packets_in, bench.counters().egress_pool_stalls), (83, 2));
    assert_eq!(bench.run_until(taken(83)), ps(FETCHED + 56 * FULL + 15_000));
    // The congestion window takes 109.
    assert_eq!((egress(&bench, DATA).packets_in, bench.counters().egress_pool_stalls), (109, 2));
    bench.run_to(us(100));
    assert_eq!((egress(&bench, DATA).used_bytes, egress(&bench, DATA).packets_in), (0, 109));
}

// spec: SEG-9, SCHED-8
#[test]
fn a_stopped_pass_goes_on_at_once_with_each_acknowledgement() {
    type Answer = fn(&Bench, Qpn) -> Packet<'static>;
    let answers: [(&str, Answer); 4] = [
        ("ACK", |bench, qpn| bench.ack(qpn, 4)),
        ("an ACK of nothing new", |bench, qpn| bench.ack(qpn, -1)),
        ("SACK", |bench, qpn| bench.sack(qpn, -1, &[3, 4])),
        ("NACK", |bench, qpn| bench.nack(qpn, 4, NackReason::Trimmed, false)),
    ];
    for (name, answer) in answers {
        let (mut bench, qpn) = sender(|_| ());
        // Ten packets have left: 45 are too many for a drain.
        bench.run_to(ps(FETCHED + 10 * FULL));
        assert_eq!(egress(&bench, DATA).packets_in, 55);
        let answer = answer(&bench, qpn);
        bench.deliver(&answer);
        assert_eq!(egress(&bench, DATA).packets_in, 65, "{name}");
    }
}

// spec: SEG-9, SCHED-8, NACK-9, RTO-2
#[test]
fn a_stopped_pass_goes_on_at_once_with_a_timeout() {
    let (mut bench, _) = sender(|a| a.initial_ack_timeout = Duration::from_us(1));
    bench.run_to(ps(1_999_999));
    assert_eq!(egress(&bench, DATA).packets_in, 55);
    // 22 packets have left, ten of them by 1 us. These go first, and need room too.
    bench.run_to(us(2));
    assert_eq!((egress(&bench, DATA).packets_in, bench.counters().rtx), (77, 10));
}

// spec: SEG-9, SCHED-5
#[test]
fn the_group_that_found_the_pool_full_stays_at_the_head() {
    let (mut bench, _) = sender(|_| ());
    bench.run_to(ps(20_000));
    // 830 bytes are left, room enough for 79; but the other group is first.
    let small = WorkRequest { peer: STRANGER, ..bench.work(1) };
    bench.post_work(QpChoice::New, small).expect("a good request");
    bench.run_to(ps(35_000));
    assert_eq!((egress(&bench, DATA).packets_in, bench.counters().egress_pool_stalls), (55, 2));
    bench.run_to(us(50));
    let peers: Vec<_> =
        bench.sent().iter().map(|seen| seen.packet().destination.octets()[3]).collect();
    // When there is room again, the first group has one turn before it.
    assert_eq!(peers.iter().position(|last| *last == 9), Some(56));
}

// spec: WIRE-9, SEG-7, PB-8, W-3
#[test]
fn how_many_packets_fit_follows_from_their_size_on_the_wire() {
    let timestamped =
        |a: &mut NicAttributes| a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp;
    let held = |set: &dyn Fn(&mut NicAttributes)| {
        let (mut bench, _) = sender(set);
        bench.run_to(ps(DOORBELL));
        let pool = egress(&bench, DATA);
        (pool.packets_in, pool.used_bytes)
    };
    assert_eq!(held(&|_| ()), (55, 55 * 4_174));
    assert_eq!(held(&timestamped), (55, 55 * 4_178));
    // 229,600 bytes: 30 more than 55 packets of 4,174, 190 less than of 4,178.
    let small = |a: &mut NicAttributes| a.egress_buffer = BufferAttributes::of(255_112);
    assert_eq!(held(&small), (55, 55 * 4_174));
    let both = |a: &mut NicAttributes| {
        small(a);
        timestamped(a);
    };
    assert_eq!(held(&both), (54, 54 * 4_178));
}

// spec: RTO-11, PB-9
#[test]
fn closing_a_qp_releases_what_it_has_reserved() {
    let (mut bench, qpn) = sender(|_| ());
    // One has left, one is leaving; some wait, some are being fetched.
    bench.run_to(ps(FETCHED + FULL));
    bench.close(qpn);
    assert_eq!(egress(&bench, DATA).used_bytes, PACKET);
    bench.run_to(ps(FETCHED + 2 * FULL));
    assert_eq!((egress(&bench, DATA).used_bytes, egress(&bench, DATA).packets_out), (0, 55));
}

// Which class leaves.

/// B with `data` full packets and `pairs` SACKs and ACKs that wait because the
/// peer has paused both classes.
fn paused(data: u32, pairs: u32, set: impl Fn(&mut NicAttributes)) -> Bench {
    let mut bench = Bench::alone(B, set);
    bench.deliver_frame(pause_both(u16::MAX));
    if data > 0 {
        bench.post_back(data * 4_096);
    }
    bench.run_to(us(2));
    for index in 0..pairs {
        bench.deliver(&bench.part(index, pairs + 1).asking());
    }
    bench.run_to(us(3));
    assert!(bench.sent().is_empty());
    bench
}

/// The classes of what was sent: p for PFC, c for control, d for data.
fn classes(bench: &mut Bench) -> String {
    let class = |seen: &crate::wiretap::Seen| match (seen.pfc(), seen.is_data()) {
        (Some(_), _) => 'p',
        (None, true) => 'd',
        (None, false) => 'c',
    };
    bench.sent().iter().map(class).collect()
}

// spec: PB-10, DSCP-3, ACK-3
#[test]
fn the_three_ways_to_choose_between_data_and_control() {
    use QueueScheduling::*;
    for (scheduling, weights, expected) in [
        (StrictPriority, [1, 5], "ccccccdddd"),
        (RoundRobin, [1, 5], "cdcdcdcdcc"),
        (WeightedRoundRobin, [1, 5], "cccccdcddd"),
        (WeightedRoundRobin, [2, 1], "cddcddcccc"),
    ] {
        let set = |a: &mut NicAttributes| {
            a.queue_scheduling = scheduling;
            a.wrr_weights = weights;
        };
        let mut bench = paused(4, 3, set);
        bench.deliver_frame(pause_both(0));
        bench.run_to(us(10));
        assert_eq!(classes(&mut bench), expected, "{scheduling:?} {weights:?}");
    }
    assert_eq!(NicAttributes::default().wrr_weights, [1, 5]);
    assert_eq!(NicAttributes::default().queue_scheduling, StrictPriority);
}

// spec: PB-9
#[test]
fn control_that_finds_its_pool_full_is_dropped_and_counted() {
    // 25,600 bytes hold 164 pairs of a SACK and an ACK, 156 bytes.
    let mut bench = paused(0, 1, |_| ());
    for _ in 0..169 {
        bench.deliver(&bench.part(0, 2).asking());
    }
    assert_eq!((bench.drops("egress_control_full"), egress(&bench, CONTROL).drops), (12, 12));
    assert_eq!(egress(&bench, CONTROL).used_bytes, 164 * (94 + 62));
    assert_eq!((bench.counters().dup_events, bench.drops("ingress_data_full")), (169, 0));
    bench.deliver_frame(pause_both(0));
    bench.run_to(us(10));
    assert_eq!(bench.sent().len(), 328);
    assert_eq!(egress(&bench, CONTROL).used_bytes, 0);
    assert_eq!(bench.answer(&bench.part(0, 2).asking()).len(), 2, "there is room again");
}

// Being paused.

/// The time for which a pause of `quanta` holds at 400 Gbps.
fn pause_time(quanta: u64) -> u64 {
    quanta * 1_280 + DELAY
}

/// When the data packets of a sender left that was paused while the third was leaving.
fn departures(frames: &[(u64, Vec<u8>)]) -> Vec<u64> {
    let mut bench = Bench::alone(A, |_| ());
    bench.post(QpChoice::New, 6 * 4_096);
    for (at, frame) in frames {
        bench.run_to(ps(*at));
        bench.deliver_frame(frame.clone());
    }
    bench.run_to(us(140));
    bench.sent().iter().map(|seen| seen.at.as_ps()).collect()
}

// spec: PB-13, PB-10
#[test]
fn a_pause_of_data_holds_until_it_expires_or_is_ended() {
    const AT: u64 = FETCHED + 2 * FULL + 40_000;
    let left = |resumed: u64| -> Vec<u64> {
        let before = [1, 2, 3].map(|n| FETCHED + n * FULL);
        let after = [1, 2, 3].map(|n| resumed + n * FULL);
        before.into_iter().chain(after).collect()
    };
    let forever = || (AT, pause(DATA, u16::MAX));
    assert_eq!(departures(&[(AT, pause(DATA, 1_000))]), left(AT + pause_time(1_000)));
    assert_eq!(departures(&[forever()]), left(AT + pause_time(65_535)));
    assert_eq!(departures(&[forever(), (5_000_000, pause(DATA, 0))]), left(5_000_000));
    // The last word counts, shorter or longer.
    let shorter = left(5_000_000 + pause_time(10));
    assert_eq!(departures(&[forever(), (5_000_000, pause(DATA, 10))]), shorter);
    let longer = left(500_000 + pause_time(900));
    assert_eq!(departures(&[(AT, pause(DATA, 400)), (500_000, pause(DATA, 900))]), longer);
}

// spec: PB-13
#[test]
fn a_pause_of_other_priorities_and_frames_that_are_none_pause_nothing() {
    let all: Vec<_> = (1..=6).map(|n| FETCHED + n * FULL).collect();
    assert_eq!(departures(&[]), all);
    for priority in 1..8 {
        assert_eq!(departures(&[(100_000, pause(priority, u16::MAX))]), all, "{priority}");
    }
    let mut disabled = pause(DATA, u16::MAX);
    disabled[17] = 0;
    assert_eq!(departures(&[(100_000, disabled)]), all, "the timer of a priority not enabled");
}

// spec: PB-13, W-14
#[test]
fn mac_control_that_is_no_pfc_is_counted_and_pauses_nothing() {
    let mut bench = Bench::alone(A, |_| ());
    type Edit = fn(&mut Vec<u8>);
    let edits: [(&str, Edit); 4] = [
        ("drop_pfc_opcode", |frame| frame[15] = 0),
        ("drop_pfc_opcode", |frame| frame[14] = 2),
        ("drop_pfc_destination", |frame| frame[5] = 2),
        ("drop_short_pfc", |frame| frame.truncate(59)),
    ];
    for (cause, edit) in edits {
        let mut frame = pause(DATA, u16::MAX);
        edit(&mut frame);
        let before = bench.drops(cause);
        bench.deliver_frame(frame);
        assert_eq!(bench.drops(cause), before + 1, "{cause}");
    }
    assert_eq!((bench.counters().pfc_pauses_rcvd, bench.nic().drops().total()), (0, 4));
    bench.post(QpChoice::New, 4_096);
    bench.run_to(us(1));
    assert_eq!(bench.lines(), ["ONLY 0 A C"]);
}

// spec: PB-13, PB-10
#[test]
fn each_class_is_paused_on_its_own() {
    let mut bench = paused(3, 1, |_| ());
    bench.deliver_frame(pause(CONTROL, 0));
    bench.run_to(us(4));
    assert_eq!(classes(&mut bench), "cc", "data waits");
    let mut bench = paused(3, 1, |_| ());
    bench.deliver_frame(pause(DATA, 0));
    bench.run_to(us(4));
    assert_eq!(classes(&mut bench), "ddd", "control waits");
    // Both pauses began at 0.
    bench.run_to(ps(pause_time(65_535) + SACK - 1));
    assert!(bench.sent().is_empty());
    bench.run_to(ps(pause_time(65_535) + SACK + ACK));
    assert_eq!(bench.lines(), ["SACK 0", "ACK 0"]);
}

// The ingress pool.

/// B with an ingress data pool of 9,000 bytes and a transmit buffer that takes
/// one part's write at a time, each of which takes `write` over one lane.
fn slow_host(lane_rate: Rate, set: impl Fn(&mut NicAttributes)) -> Bench {
    Bench::alone(B, |a| {
        a.pcie_nic.lane_count = 1;
        a.pcie_nic.lane_rate = lane_rate;
        a.mss = PART as u32;
        a.pcie_nic.tx_data_bytes = PART as u64;
        a.ingress_buffer = BufferAttributes::of(10_000);
        set(a);
    })
}

/// One bit each microsecond: no write ends within a test.
fn stuck_host(set: impl Fn(&mut NicAttributes)) -> Bench {
    slow_host(Rate::mbps(1), set)
}

// spec: RX-1, PB-11, PCIE-7, PB-14, W-9
#[test]
fn packets_fill_the_pool_at_their_full_size_and_sacks_tell_the_penalty() {
    let mut bench = stuck_host(|_| ());
    // What is held when a SACK is drawn, its own packet included; the first
    // packet's write was accepted at once. The penalty goes from 2,250 bytes (0)
    // to 6,750 (127).
    let expected = [
        (CHARGE, 0),
        (CHARGE, 0),
        (2 * CHARGE, 0),
        (3 * CHARGE, 27),
        (4 * CHARGE, 58),
        (5 * CHARGE, 88),
        (6 * CHARGE, 119),
        (7 * CHARGE, 127),
        (8 * CHARGE, 127),
    ];
    for (index, (held, penalty)) in (0..).zip(expected) {
        let answers = bench.answers(&bench.part(index, 20).asking());
        let Body::Sack(_, cc_state) = answers[0].packet().body else { panic!("a SACK") };
        assert_eq!((cc_state.penalty, cc_state.restore_cwnd), (penalty, false), "{index}");
        let left = if index == 0 { 0 } else { held };
        assert_eq!(ingress(&bench, DATA).used_bytes, left, "{index}");
    }
    // 9,702 bytes would be too many: nothing is written, nobody answers.
    assert!(bench.answer(&bench.part(9, 20).asking()).is_empty());
    assert_eq!((bench.drops("ingress_data_full"), ingress(&bench, DATA).drops), (1, 1));
    assert_eq!(bench.written(9 * PART, PART), [0; PART]);
    assert_eq!(bench.written(8 * PART, PART), part_bytes(8), "memory does not wait for PCIe");
    // Control has a pool of its own.
    bench.deliver(&bench.part(10, 20).trimmed(Role::Trimmed));
    assert_eq!((bench.drops("ingress_data_full"), bench.counters().trimmed_pkts_rcvd), (1, 1));
}

// spec: PB-14
#[test]
fn the_thresholds_of_the_penalty_and_its_flag_are_attributes() {
    let mut bench = stuck_host(|a| {
        a.receiver_congestion_low = Share::from_ppm(0);
        a.receiver_congestion_high = Share::from_ppm(1_000_000);
        a.restore_cwnd = true;
    });
    let answers = bench.answers(&bench.part(0, 2).asking());
    let Body::Sack(_, cc_state) = answers[0].packet().body else { panic!("a SACK") };
    assert_eq!((cc_state.penalty, cc_state.restore_cwnd), (15, true), "127 x 1,078 / 9,000");
}

// spec: PB-11, PB-2, RX-7, RX-3
#[test]
fn what_writes_nothing_is_released_at_once() {
    let mut bench = stuck_host(|_| ());
    for index in [0, 1] {
        bench.deliver(&bench.part(index, 20));
    }
    assert_eq!(ingress(&bench, DATA).used_bytes, CHARGE, "the second waits for its write");
    let mut empty = bench.part(0, 1).bth(|bth| bth.destination_qp = Qpn::masked(78));
    empty = empty.reth(|reth| reth.dma_length = 0);
    if let Body::Write { payload, .. } = &mut empty.body {
        *payload = &[];
    }
    let others = [
        ("a duplicate", bench.part(1, 20), DATA),
        ("out of window", bench.part(1, 20).bth(|bth| bth.psn = psn(1_500)), DATA),
        ("refused", bench.part(2, 20).reth(|reth| reth.va = 0), DATA),
        ("no QP", bench.part(2, 20).to(Qpn::masked(12_345)), DATA),
        ("no payload", empty, DATA),
        ("trimmed", bench.part(2, 20).trimmed(Role::Trimmed), CONTROL),
        ("control", bench.ack(Qpn::masked(5), 0), CONTROL),
    ];
    for (what, packet, class) in others {
        let packet = Packet { source: bench.nic_ip(A), destination: bench.nic_ip(B), ..packet };
        let before = ingress(&bench, class).packets_out;
        bench.deliver(&packet);
        assert_eq!(ingress(&bench, class).packets_out, before + 1, "{what}");
        let used = [DATA, CONTROL].map(|class| ingress(&bench, class).used_bytes);
        assert_eq!(used, [CHARGE, 0], "{what}");
    }
    assert_eq!((bench.counters().dup_events, bench.counters().messages_rcvd), (1, 1));
    bench.deliver_frame(pause(DATA, 1));
    assert_eq!(ingress(&bench, DATA).packets_in + ingress(&bench, CONTROL).packets_in, 9);
}

// spec: DSCP-3, RX-1
#[test]
fn the_codepoint_chooses_the_pool() {
    let dscp = Codepoints::default();
    for (role, dscp, class) in [
        (Some(Role::NoTrim), dscp.no_trim, DATA),
        (Some(Role::Trimmable), dscp.trimmable, DATA),
        (Some(Role::TrimmableRtx), dscp.trimmable_rtx, DATA),
        (None, 1, DATA),
        (None, 63, DATA),
        (Some(Role::Control), dscp.control, CONTROL),
    ] {
        let mut bench = Bench::alone(B, |_| ());
        bench.deliver(&Packet { role, dscp, ..bench.part(0, 2) });
        let taken = [DATA, CONTROL].map(|class| ingress(&bench, class).packets_in);
        assert_eq!((taken[class], taken[1 - class]), (1, 0), "{role:?} {dscp}");
    }
    for role in [Role::Trimmed, Role::TrimmedLastHop] {
        let mut bench = Bench::alone(B, |_| ());
        bench.deliver(&bench.part(0, 2).trimmed(role));
        assert_eq!(ingress(&bench, CONTROL).packets_in, 1, "{role:?}");
    }
}

// Pausing the peer.

/// B pauses data at 7,200 of 9,000 bytes; nine parts have arrived at 1 us. The
/// first one's write was accepted at once, the pool holds the other eight.
fn pausing(lane_rate: Rate) -> Bench {
    let mut bench = slow_host(lane_rate, |a| a.pfc.enabled = [true, false]);
    bench.run_to(us(1));
    for index in 0..9 {
        bench.deliver(&bench.part(index, 20));
    }
    assert_eq!(ingress(&bench, DATA).used_bytes, 8 * CHARGE);
    bench
}

/// The PFC frames among what was sent: their last bits' instants and lines.
fn pauses(bench: &mut Bench) -> Vec<(u64, String)> {
    let sent = bench.sent();
    let frames = sent.iter().filter(|seen| seen.pfc().is_some());
    frames.map(|seen| (seen.at.as_ps(), seen.line())).collect()
}

/// Serialization of a PFC frame: 64 bytes.
const PFC: u64 = 1_280;

// spec: PB-12, PB-13, PB-10
#[test]
fn the_peer_is_paused_at_four_fifths_and_goes_on_at_two() {
    let mut bench = pausing(Rate::mbps(31_520));
    bench.run_to(us(5));
    // The fourth part has drawn a SACK, which is leaving when the eighth comes.
    // 1,000 + 2 x 34 bytes take 271.066 ns. With each write that ends one more is
    // accepted; the fifth leaves 3,234 bytes, less than 3,600.
    let xoff = 1_000_000 + SACK;
    let xon = 1_000_000 + 5 * 271_066;
    let expected = [(xoff + PFC, "PAUSE 0:65535"), (xon + PFC, "PAUSE 0:0")];
    assert_eq!(pauses(&mut bench), expected.map(|(at, line)| (at, line.to_owned())));
    assert_eq!((bench.counters().pfc_pauses_sent, bench.counters().pfc_resumes_sent), (1, 1));
}

// spec: PB-12
#[test]
fn a_pause_is_told_again_every_half_of_its_time() {
    let mut bench = pausing(Rate::mbps(1));
    bench.run_to(us(100));
    // (65,535 x 1.28 ns + 100 ns) / 2
    let half = 41_992_400;
    // The first one waits for a SACK that is leaving.
    let times = [SACK, half, 2 * half].map(|after| 1_000_000 + after + PFC);
    assert_eq!(pauses(&mut bench), times.map(|at| (at, "PAUSE 0:65535".to_owned())));
}

// spec: PB-12, PB-13
#[test]
fn a_class_is_not_paused_unless_it_is_enabled() {
    let mut bench = slow_host(Rate::mbps(1), |a| a.pfc.enabled = [false, true]);
    for index in 0..12 {
        bench.deliver(&bench.part(index, 20));
    }
    bench.run_to(us(100));
    assert_eq!((pauses(&mut bench), bench.drops("ingress_data_full")), (vec![], 3));
}

// spec: PB-10, PB-13
#[test]
fn pfc_frames_go_first_and_are_never_paused() {
    let mut bench = slow_host(Rate::mbps(31_520), |a| a.pfc.enabled = [true, false]);
    bench.deliver_frame(pause(DATA, u16::MAX));
    bench.post_back(3 * PART as u32);
    bench.run_to(us(1));
    bench.deliver_frame(pause(DATA, 0));
    // The first packet leaves; behind it wait data, SACKs, ACKs and a pause frame.
    for index in 0..9 {
        bench.deliver(&bench.part(index, 20).asking());
    }
    bench.run_to(us(2));
    assert_eq!(classes(&mut bench), "dpccccccccccccccccccdd");
    let charged = [DATA, CONTROL].map(|class| egress(&bench, class).packets_in);
    assert_eq!(charged, [3, 18], "no pool is charged for it");
    // While both classes are paused the pause frame leaves.
    let mut bench = slow_host(Rate::mbps(31_520), |a| a.pfc.enabled = [true, false]);
    bench.deliver_frame(pause_both(u16::MAX));
    bench.post_back(3 * PART as u32);
    bench.run_to(us(1));
    for index in 0..9 {
        bench.deliver(&bench.part(index, 20).asking());
    }
    bench.run_to(ps(1_100_000));
    assert_eq!(bench.lines(), ["PAUSE 0:65535"]);
    bench.deliver_frame(pause_both(0));
    bench.run_to(us(2));
    assert_eq!(classes(&mut bench), "ccccccccccccccccccddd");
}
