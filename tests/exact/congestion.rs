//! The congestion window, from what arrives at a NIC.

use mrc_lab::nic::{QpChoice, QpSide, WindowInfo};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{Direction, WindowCause};
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::{Body, Packet};
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::seth::PathMark;

use crate::bench::{Bench, Edit};
use crate::lab::{A, B, Tweak, back_to_back, flow, run, us};

const PACKET: u64 = 4_156;
/// 1.5 x 400 Gbps x 6 us.
const LARGEST: u64 = 450_000;

/// A sender with NSCC that has filled its window of 109 packets; its round trips
/// are as long as its configuration says, so that none is a surprise.
fn full_sender(set: impl Fn(&mut mrc_lab::config::NicAttributes)) -> (Bench, Qpn) {
    let mut bench = Bench::alone(A, |a| {
        a.congestion.nscc_enable = true;
        set(a);
    });
    let qpn = bench.post(QpChoice::New, 200 * 4_096);
    bench.run_to(us(20));
    (bench, qpn)
}

fn window(bench: &Bench) -> WindowInfo {
    let side = bench.nic().qps().find(|qp| qp.side == QpSide::Requester).expect("it sends");
    side.window.expect("it has a group")
}

/// `sack` says that `units` x 256 bytes have been received in all, and the mark.
fn telling(sack: Packet<'static>, units: u32, mark: PathMark) -> Packet<'static> {
    let mut sack = sack.seth(|seth| seth.ce_mark = mark);
    if let Body::Sack(_, cc_state) = &mut sack.body {
        *cc_state = CcState { received_units: units, ..*cc_state };
    }
    sack
}

// The two-host lab's round trip of 0.3 us is far below 6 us: the window shrinks
// with the base RTT, and a packet that nearly fills it asks for an ACK.
// spec: CC-9, ACK-4, ACK-5, RTT-2
#[test]
fn the_base_rtt_falls_in_a_small_lab_and_packets_ask_for_acks() {
    let scenario = back_to_back().with_flow(flow(64 * 4_096, 1));
    let acks = |ran: &crate::lab::Ran| ran.packets(B, Direction::Tx, Kind::Ack).count();
    assert_eq!(acks(&run(&scenario)), 1, "with a fixed window");
    let ran = run(&scenario.with_nscc());
    assert!(ran.is_complete());
    // 12 packets had left when the first SACK came: nothing was near the window.
    assert_eq!(acks(&ran), 52);
    let falls: Vec<_> = ran.trace.windows().collect();
    let (_, node, first) = falls[0];
    assert_eq!((node, first.cause), (A, WindowCause::BaseRtt));
    // The first packet needs 100 ns each way and the SACK's 1.88 ns; with 1 us on
    // top 400 Gbps carry 60,094 bytes, and half as much again is allowed.
    assert_eq!(first.window, 90_141);
    assert_eq!(ran.counters[0].base_rtt_falls, 1);
}

// spec: ACK-8
#[test]
fn a_cumulative_ack_does_not_run_congestion_control() {
    let (mut bench, qpn) = full_sender(|_| ());
    let before = window(&bench);
    bench.deliver(&bench.ack(qpn, 9));
    let after = window(&bench);
    assert_eq!((after.bytes, after.average_delay), (before.bytes, before.average_delay));
    assert_eq!(bench.counters().base_rtt_falls + bench.counters().cwnd_eta, 0);
    // A SACK of the same does.
    bench.deliver(&bench.sack(qpn, 9, &[12]));
    assert_ne!(window(&bench).average_delay, before.average_delay);
}

// spec: CC-1
#[test]
fn received_bytes_count_from_sack_to_sack_and_never_backwards() {
    let (mut bench, qpn) = full_sender(|a| a.congestion.quick_adapt_gate = 0);
    let delivered = |bench: &mut Bench, number: i64, units| {
        let sack = telling(bench.sack(qpn, number, &[]), units, PathMark::None);
        bench.deliver(&sack.seth(|seth| seth.subject = mrc_lab::wire::seth::SackSubject::data(0)));
    };
    // The first opens quick adapt's window of 10.5 us; what comes in it counts.
    delivered(&mut bench, 0, 16);
    delivered(&mut bench, 1, 0x40);
    delivered(&mut bench, 2, 0x30);
    delivered(&mut bench, 3, 0x40);
    delivered(&mut bench, 4, 0x140);
    bench.run_for(Duration::from_us(11));
    bench.deliver(&bench.nack(qpn, 100, NackReason::Trimmed, false));
    assert_eq!(bench.counters().quick_adapt, 1);
    assert_eq!(window(&bench).bytes, (0x140 - 16) * 256);
}

// spec: CC-5, NACK-11
#[test]
fn a_trimmed_packet_leaves_the_flight_and_the_window() {
    for reason in [NackReason::Trimmed, NackReason::TrimmedLastHop] {
        let (mut bench, qpn) = full_sender(|_| ());
        assert_eq!((window(&bench).bytes, bench.in_flight()), (LARGEST, 109 * PACKET));
        bench.deliver(&bench.nack(qpn, 5, reason, false));
        assert_eq!(window(&bench).bytes, LARGEST - PACKET);
        // 108 packets fill the smaller window: the retransmission waits.
        assert_eq!((bench.in_flight(), bench.counters().cwnd_trim), (108 * PACKET, 1));
        // The same again is about a packet that is not in flight any more.
        bench.deliver(&bench.nack(qpn, 5, reason, false));
        assert_eq!(bench.counters().cwnd_trim, 1);
    }
}

// spec: CC-6, NACK-11
#[test]
fn a_packet_out_of_the_window_or_refused_changes_no_congestion_window() {
    for reason in [NackReason::PsnOutOfWindow, NackReason::NoResource] {
        let (mut bench, qpn) = full_sender(|_| ());
        let before = window(&bench);
        bench.deliver(&bench.nack(qpn, 5, reason, false));
        let after = window(&bench);
        assert_eq!((after.bytes, after.base_rtt), (before.bytes, before.base_rtt));
        assert_eq!(after.average_delay, before.average_delay);
        assert_eq!(bench.counters().nack_pkts_rcvd, 1);
    }
}

// spec: CC-6, CC-11, RTO-2
#[test]
fn each_expired_packet_leaves_the_window_down_to_one_packet() {
    let (mut bench, _) = full_sender(|_| ());
    bench.run_to(us(155));
    // Packets left 83.48 ns apart: 48 of them have expired by now.
    let expired = bench.counters().rto;
    assert_eq!(bench.counters().cwnd_timeout, expired);
    assert_eq!(window(&bench).bytes, LARGEST - expired * PACKET);
    bench.run_to(us(200));
    assert_eq!((window(&bench).bytes, bench.in_flight()), (PACKET, PACKET));
    assert_eq!(bench.counters().rtx, 1, "one fits");
}

// spec: CC-6, LOSS-3
#[test]
fn a_gap_takes_its_packets_off_the_window() {
    let (mut bench, qpn) = full_sender(|a| a.sack_loss_min_retx_pkts = 3);
    bench.deliver(&bench.sack(qpn, 0, &[2, 3, 6, 9]));
    // 1, 4 and 5 lie more than three below 9.
    let counters = bench.counters();
    assert_eq!((counters.cwnd_sack_gap, counters.rtx_sack_gap), (3, 3));
    assert_eq!(window(&bench).bytes, LARGEST - 3 * PACKET);
}

// spec: CC-10
#[test]
fn a_fixed_window_limits_and_does_not_move() {
    let (mut bench, qpn) = full_sender(|a| a.congestion.nscc_enable = false);
    bench.deliver(&bench.nack(qpn, 5, NackReason::Trimmed, false));
    bench.deliver(&telling(bench.sack(qpn, 0, &[8]), 32, PathMark::SkipOnce));
    bench.run_to(us(160));
    assert!(bench.counters().rto > 50);
    assert_eq!((window(&bench).bytes, bench.in_flight()), (LARGEST, 109 * PACKET));
}

// spec: CC-10
#[test]
fn with_pass_through_the_window_moves_and_holds_nothing_back() {
    let (mut bench, qpn) = full_sender(|a| a.congestion.pass_through = true);
    bench.run_to(us(40));
    assert_eq!((window(&bench).bytes, bench.in_flight()), (LARGEST, 200 * PACKET));
    bench.deliver(&bench.nack(qpn, 5, NackReason::Trimmed, false));
    assert_eq!((window(&bench).bytes, bench.in_flight()), (LARGEST - PACKET, 200 * PACKET));
}

// spec: SCHED-3, CC-9
#[test]
fn a_later_group_begins_anew() {
    let (mut bench, qpn) = full_sender(|_| ());
    bench.deliver(&bench.nack(qpn, 5, NackReason::Trimmed, false));
    bench.close(qpn);
    bench.post(QpChoice::New, 4_096);
    let WindowInfo { bytes, base_rtt, .. } = window(&bench);
    assert_eq!((bytes, base_rtt), (LARGEST, Duration::from_us(6)));
}

// A duplicated packet with a mark: the receiver counts it once, and the sender
// does not react to it twice.
// case B13
// spec: CC-2, RX-7
#[test]
fn a_duplicated_mark_lowers_the_window_once() {
    let (mut bench, qpn) = full_sender(|a| {
        // Delay above the target, always, and a decrease due at once.
        a.congestion.override_target_queue_delay = true;
        a.congestion.target_queue_delay = Duration::from_ps(1);
        a.congestion.delay_alpha = mrc_lab::units::Share::from_ppm(1_000_000);
    });
    assert_eq!(bench.world.now(), Instant::ZERO + Duration::from_us(20));
    let sack = telling(bench.sack(qpn, 0, &[1]), 32, PathMark::SkipOnce);
    bench.deliver(&sack);
    let once = window(&bench).bytes;
    assert_eq!((bench.counters().cwnd_decrease, bench.counters().rtt_samples), (1, 1));
    bench.deliver(&sack);
    assert_eq!((window(&bench).bytes, bench.counters().cwnd_decrease), (once, 1));
}
