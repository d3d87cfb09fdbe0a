use super::*;
use crate::config::CongestionAttributes;

/// A full packet's IP datagram.
const PACKET: u64 = 4_156;
const GBPS_100: Rate = Rate::gbps(100);

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn at_ns(ns: u64) -> Instant {
    Instant::ZERO + Duration::from_ns(ns)
}

fn at(us: u64) -> Instant {
    at_ns(us * 1_000)
}

/// 100 Gbps over 12 us, which is the reference network too: a is 1, the target
/// 9 us, the largest window 225,000 bytes.
fn attributes() -> NicAttributes {
    NicAttributes {
        data_rate: GBPS_100,
        config_base_rtt: us(12),
        congestion: CongestionAttributes {
            reference_rate: GBPS_100,
            reference_rtt: us(12),
            ..CongestionAttributes::default()
        },
        ..NicAttributes::default()
    }
}

fn nscc_of(attributes: &NicAttributes) -> Nscc {
    let constants = Constants::new(attributes, GBPS_100);
    Nscc::new(constants, attributes.max_window(GBPS_100), Instant::ZERO)
}

/// A group that began at 0 and has a window of `cwnd` bytes.
fn nscc(cwnd: f64) -> Nscc {
    Nscc { cwnd, ..nscc_of(&attributes()) }
}

/// A SACK of a full packet that was delayed by `delay` beyond 12 us.
fn sack(delay: Duration) -> SackSignal {
    SackSignal {
        received: PACKET,
        rtt: Some(us(12) + delay),
        marked: false,
        penalty: 0,
        restore_cwnd: false,
        in_flight_before: 100_000,
        in_flight: 100_000 - PACKET,
    }
}

fn marked(delay: Duration) -> SackSignal {
    SackSignal { marked: true, ..sack(delay) }
}

fn trim(in_flight: u64) -> TrimSignal {
    TrimSignal { bytes: PACKET, rtt: None, in_flight }
}

impl Nscc {
    fn sacked(&mut self, now: Instant, sack: &SackSignal) -> Vec<WindowCause> {
        let mut changes = WindowChanges::new();
        self.on_sack(now, sack, &mut changes);
        changes.into_iter().map(|change| change.cause).collect()
    }

    fn trimmed(&mut self, now: Instant, in_flight: u64) -> Vec<WindowCause> {
        let mut changes = WindowChanges::new();
        self.on_trim(now, &trim(in_flight), &mut changes);
        changes.into_iter().map(|change| change.cause).collect()
    }

    fn lost(&mut self, loss: Loss) -> Vec<WindowCause> {
        let mut changes = WindowChanges::new();
        self.on_loss(loss, PACKET, 0, &mut changes);
        changes.into_iter().map(|change| change.cause).collect()
    }
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 0.001, "{value}, not {expected}");
}

// spec: CC-2, CC-3
#[test]
fn below_the_target_it_grows_in_proportion_and_every_round_trip() {
    let mut nscc = nscc(100_000.0);
    assert_eq!(nscc.sacked(at(12), &sack(us(3))), [WindowCause::Proportional, WindowCause::Eta]);
    assert_near(nscc.cwnd, 100_968.847);
}

// spec: CC-2, CC-3
#[test]
fn above_the_target_without_a_mark_it_grows_by_a_fair_share() {
    let mut nscc = nscc(100_000.0);
    assert_eq!(nscc.sacked(at(12), &sack(us(10))), [WindowCause::Fair, WindowCause::Eta]);
    assert_near(nscc.cwnd, 101_487.017);
}

// spec: CC-2
#[test]
fn a_mark_above_the_target_lowers_it_by_how_far_the_average_is_above() {
    let mut nscc = nscc(100_000.0);
    (nscc.average, nscc.last_adjust) = (18e6, at(1));
    assert_eq!(nscc.sacked(at_ns(12_500), &marked(us(18))), [WindowCause::Decrease]);
    assert_near(nscc.cwnd, 60_000.0);
    // Once in a round trip only.
    assert_eq!(nscc.sacked(at_ns(12_900), &marked(us(18))), []);
}

// spec: CC-2
#[test]
fn a_mark_below_the_target_does_nothing() {
    let mut nscc = nscc(100_000.0);
    nscc.last_adjust = at(1);
    assert_eq!(nscc.sacked(at_ns(12_500), &marked(us(3))), []);
    assert_near(nscc.cwnd, 100_000.0);
}

// spec: CC-4, CC-5
#[test]
fn when_little_got_through_a_trim_makes_the_window_what_did() {
    let mut nscc = nscc(225_000.0);
    (nscc.quick.end, nscc.quick.achieved) = (Some(at(20)), 12_468);
    assert_eq!(nscc.trimmed(at(21), 180_000 - PACKET), [WindowCause::QuickAdapt]);
    assert_near(nscc.cwnd, 12_468.0);
    assert_eq!((nscc.quick.to_ignore, nscc.quick.end), (175_844, Some(at(42))));
    assert_eq!(nscc.trimmed(at(22), 180_000 - 2 * PACKET), []);
    assert_eq!((nscc.cwnd, nscc.quick.ignored), (12_468.0, PACKET));
}

// spec: CC-5
#[test]
fn a_trim_takes_its_packet_off_when_quick_adapt_is_not_due() {
    let mut nscc = nscc(100_000.0);
    nscc.quick.end = Some(at(50));
    assert_eq!(nscc.trimmed(at(21), 90_000), [WindowCause::Trim]);
    assert_near(nscc.cwnd, 95_844.0);
    assert_eq!(nscc.average, 0.25 * 12e6, "ConfigBaseRTT is one sample of delay");
}

// spec: CC-2
#[test]
fn after_a_whole_window_without_delay_it_grows_fast() {
    let mut nscc = nscc(20_000.0);
    nscc.quick.end = Some(at(1_000));
    let windows: Vec<f64> = (0..8)
        .map(|n| {
            nscc.sacked(at_ns(1_000 + 300 * n), &sack(Duration::ZERO));
            nscc.cwnd
        })
        .collect();
    assert_eq!(windows[..4], [20_000.0; 4]);
    assert_eq!(windows[4..], [21_039.0, 22_078.0, 23_117.0, 24_156.0]);
    // Delay ends it.
    assert_eq!(nscc.sacked(at_ns(3_500), &sack(us(1))), [WindowCause::Proportional]);
    assert!(!nscc.fast && nscc.clear_bytes == 0);
}

// spec: CC-3
#[test]
fn more_than_eight_packets_bring_the_adjustment_forward_but_not_eta() {
    let mut nscc = nscc(200_000.0);
    for n in 1..=8 {
        assert_eq!(nscc.sacked(at_ns(n), &sack(us(3))), [], "{n}");
    }
    assert_eq!(nscc.sacked(at_ns(9), &sack(us(3))), [WindowCause::Proportional]);
    let gathered = 9.0 * 34_544_672.0;
    assert_near(nscc.cwnd, 200_000.0 + gathered / 200_000.0);
    assert_eq!((nscc.received, nscc.proportional, nscc.last_adjust), (0, 0.0, Instant::ZERO));
}

// spec: CC-1, CC-11
#[test]
fn a_sack_without_a_sample_counts_its_bytes_and_moves_nothing() {
    let mut nscc = nscc(100_000.0);
    assert_eq!(nscc.sacked(at(12), &SackSignal { rtt: None, ..sack(us(0)) }), []);
    let counted = (nscc.received, nscc.quick.achieved, nscc.quick.ignored);
    assert_eq!(counted, (PACKET, PACKET, PACKET));
    assert_eq!((nscc.cwnd, nscc.quick.end, nscc.last_adjust), (100_000.0, None, Instant::ZERO));
}

// spec: CC-1, RTT-4
#[test]
fn a_probe_response_counts_its_bytes_and_feeds_the_base_rtt_only() {
    let mut nscc = nscc(100_000.0);
    let mut changes = WindowChanges::new();
    nscc.on_probe_response(PACKET, Some(us(20)), 0, &mut changes);
    assert_eq!((nscc.received, nscc.average, nscc.quick.end), (PACKET, 0.0, None));
    assert!(changes.is_empty());
    nscc.on_probe_response(0, Some(us(4)), 0, &mut changes);
    assert_eq!((nscc.base_rtt, nscc.min_rtt), (us(5), us(4)));
    assert_eq!(changes[0].cause, WindowCause::BaseRtt);
}

// spec: CC-4
#[test]
fn the_first_sack_or_trim_opens_the_first_window_of_quick_adapt() {
    let mut by_sack = nscc(225_000.0);
    by_sack.sacked(at(5), &sack(us(0)));
    assert_eq!((by_sack.quick.end, by_sack.quick.achieved), (Some(at(5 + 12 + 9)), 0));
    let mut by_trim = nscc(225_000.0);
    assert_eq!(by_trim.trimmed(at(5), 100_000), [WindowCause::Trim]);
    assert_eq!(by_trim.quick.end, Some(at(26)));
    // With as much delivered as the gate asks, the window stays.
    by_trim.quick.achieved = 225_000 / 8;
    assert_eq!(by_trim.trimmed(at(26), 100_000), [WindowCause::Trim]);
    assert_eq!((by_trim.quick.achieved, by_trim.quick.end), (0, Some(at(47))));
}

// spec: CC-4, CC-1
#[test]
fn marked_sacks_of_what_was_in_flight_then_are_ignored() {
    let mut nscc = nscc(225_000.0);
    (nscc.quick.end, nscc.quick.achieved) = (Some(at(20)), 10_000);
    nscc.trimmed(at(21), 2 * PACKET);
    nscc.average = 30e6;
    (nscc.fair, nscc.received) = (5.0, 7);
    assert_eq!(nscc.sacked(at(40), &marked(us(30))), [], "old news");
    assert_eq!((nscc.fair, nscc.received), (0.0, 0), "a hit forgets what was gathered");
    assert_eq!(nscc.quick.ignored, PACKET);
    assert_eq!(nscc.sacked(at(40), &marked(us(30)))[0], WindowCause::Decrease, "new");
}

// spec: CC-4
#[test]
fn without_trimming_a_long_average_delay_starts_quick_adapt() {
    let untrimmed = NicAttributes { trimming_enabled: false, ..attributes() };
    for (attributes, acts) in [(untrimmed, true), (attributes(), false)] {
        let mut nscc = nscc_of(&attributes);
        (nscc.quick.end, nscc.quick.achieved) = (Some(at(20)), 5_000);
        nscc.average = 25e6;
        let causes = nscc.sacked(at(21), &sack(us(30)));
        assert_eq!(causes.contains(&WindowCause::QuickAdapt), acts);
    }
}

// spec: CC-6, CC-11
#[test]
fn losses_take_their_packet_off_and_never_below_a_packet() {
    let mut nscc = nscc(9_000.0);
    assert_eq!(nscc.lost(Loss::Timeout), [WindowCause::Timeout]);
    assert_eq!((nscc.cwnd, nscc.quick.ignored), (4_844.0, PACKET));
    assert_eq!(nscc.lost(Loss::SackGap), [WindowCause::SackGap]);
    assert_eq!((nscc.cwnd, nscc.window()), (4_156.0, 4_156));
    assert!(!nscc.quick.trigger, "quick adapt does not run");
}

/// The window after a round trip of `packets` SACKs with a penalty, where the
/// sender fills the window whenever it can.
fn penalized(penalty: u8, packets: u64) -> f64 {
    let mut nscc = nscc((packets * PACKET) as f64);
    let mut in_flight = packets * PACKET;
    for n in 0..packets {
        let in_flight_before = in_flight;
        in_flight -= PACKET;
        let sack = SackSignal { penalty, in_flight_before, in_flight, rtt: None, ..sack(us(0)) };
        assert_eq!(nscc.sacked(at_ns(n), &sack), [WindowCause::Penalty]);
        while nscc.window() > in_flight {
            in_flight += PACKET;
        }
    }
    nscc.cwnd
}

// spec: CC-7
#[test]
fn a_penalty_of_64_halves_the_window_in_a_round_trip_and_127_leaves_a_packet() {
    let (half, least) = (penalized(64, 40), penalized(127, 40));
    let packets = |window: f64| (window / PACKET as f64).round() as u64;
    assert_eq!((packets(half), packets(least)), (20, 1));
}

// spec: CC-7
#[test]
fn the_window_is_restored_when_the_receiver_says_so() {
    let mut nscc = nscc(100_000.0);
    let penalty = SackSignal { penalty: 100, ..sack(us(3)) };
    // No increase with a penalty: neither is one gathered nor is one applied.
    nscc.fair = 1e9;
    assert_eq!(nscc.sacked(at(12), &penalty), [WindowCause::Penalty]);
    assert_eq!(nscc.sacked(at(12), &penalty), [WindowCause::Penalty]);
    assert_eq!(nscc.proportional, 0.0);
    assert!(nscc.cwnd < 95_000.0);
    nscc.fair = 0.0;
    let calm = SackSignal { rtt: None, ..sack(us(3)) };
    assert_eq!(nscc.sacked(at(13), &calm), [], "not asked for");
    let restore = SackSignal { restore_cwnd: true, ..calm };
    assert_eq!(nscc.sacked(at(13), &restore), [WindowCause::Restore]);
    assert_eq!(nscc.cwnd, 100_000.0);
    assert_eq!(nscc.sacked(at(13), &restore), [], "once");
}

// spec: CC-9
#[test]
fn the_base_rtt_falls_and_takes_the_largest_window_with_it() {
    let mut nscc = nscc_of(&attributes());
    assert_eq!(nscc.sacked(at(1), &SackSignal { rtt: Some(us(11)), ..sack(us(0)) }), []);
    assert_eq!((nscc.base_rtt, nscc.max_window), (us(12), 225_000.0), "within the margin");
    let short = SackSignal { rtt: Some(us(7)), ..sack(us(0)) };
    assert_eq!(nscc.sacked(at(2), &short)[0], WindowCause::BaseRtt);
    // 1.5 x 100 Gbps x 8 us.
    assert_eq!((nscc.base_rtt, nscc.min_rtt), (us(8), us(7)));
    assert_eq!((nscc.max_window, nscc.cwnd), (150_000.0, 150_000.0));
    // Delays count from the shortest from now on; the base never rises.
    nscc.average = 0.0;
    nscc.sacked(at(3), &SackSignal { rtt: Some(us(11)), ..sack(us(0)) });
    assert_eq!((nscc.average, nscc.base_rtt), (1e6, us(8)));
}

// spec: CC-9
#[test]
fn a_configured_window_can_be_kept() {
    let mut attributes = attributes();
    attributes.congestion.keep_configured_max_window = true;
    let mut nscc = nscc_of(&attributes);
    let mut changes = WindowChanges::new();
    nscc.on_probe_response(0, Some(us(2)), 0, &mut changes);
    assert_eq!((nscc.base_rtt, nscc.max_window, nscc.cwnd), (us(3), 225_000.0, 225_000.0));
}

// spec: CC-9, CC-11
#[test]
fn an_overriding_window_counts_in_packets_until_the_base_rtt_falls() {
    let mut attributes = attributes();
    attributes.congestion.override_max_window = true;
    assert_eq!(attributes.max_window(GBPS_100), 108 * PACKET);
    let mut nscc = nscc_of(&attributes);
    assert_eq!(nscc.window(), 448_848);
    nscc.sacked(at(1), &SackSignal { rtt: Some(us(1)), ..sack(us(0)) });
    assert_eq!(nscc.window(), 37_500);
}

// spec: CC-12
#[test]
fn impossible_settings_are_refused() {
    let refused = |set: fn(&mut NicAttributes)| {
        let mut attributes = attributes();
        set(&mut attributes);
        attributes.problems().iter().map(|problem| problem.attribute).collect::<Vec<_>>()
    };
    assert_eq!(refused(|_| ()), [""; 0]);
    let no_target = |a: &mut NicAttributes| {
        a.congestion.override_target_queue_delay = true;
        a.congestion.target_queue_delay = Duration::ZERO;
    };
    assert_eq!(refused(no_target), ["TargetQueueDelay"]);
    let no_reference = |a: &mut NicAttributes| a.congestion.reference_rtt = Duration::ZERO;
    assert_eq!(refused(no_reference), ["ReferenceNetworkRTT"]);
    // 1.5 x 100 Gbps x 221 ns are 4,143 bytes.
    assert_eq!(refused(|a| a.config_base_rtt = Duration::from_ns(221)), ["ConfigBaseRTT"]);
    assert_eq!(refused(|a| a.config_base_rtt = Duration::from_ns(222)), [""; 0]);
    assert_eq!(refused(|a| a.config_base_rtt = Duration::from_secs(1)), ["ConfigBaseRTT"]);
}
