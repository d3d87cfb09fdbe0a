use core::net::Ipv4Addr;

use super::*;
use crate::nic::WorkRequest;
use crate::nic::congestion::CongestionSettings;
use crate::wire::cc_state::CcState;
use crate::wire::neth::{NackReason, Neth};
use crate::wire::psn::Psn;
use crate::wire::seth::{PathMark, SackSubject, Seth};

/// A sending side with everything around it.
struct Bench {
    requester: Requester,
    group: QpGroup,
    timers: Timers,
    counters: NicCounters,
    window_changes: WindowChanges,
    schedule: RetransmitSchedule,
    first: PsnExt,
}

const PACKET: u32 = 4_156;
/// What counts here is not the sample.
const QUEUED: NackNews = NackNews::Queued(None);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn work(length: u32) -> WorkRequest {
    let key = RKey(1);
    WorkRequest { wqe_id: 1, peer: PEER, lkey: key, local_va: 0, length, remote_va: 0, rkey: key }
}

impl Bench {
    /// A sending side with one message of `packets` full packets.
    fn new(packets: u32, set: impl FnOnce(&mut NicAttributes)) -> Self {
        let mut attributes = NicAttributes::default();
        set(&mut attributes);
        let local = QpAddress { ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::masked(77) };
        let first = PsnExt::first(Psn::masked(0xff_fff0));
        let limits = RequesterLimits::new(&attributes);
        let mut bench = Self {
            requester: Requester::new(local, PEER, GroupId::FIRST, first, limits),
            group: QpGroup::new(PEER, &CongestionSettings::fixed(u64::MAX / 2), Instant::ZERO),
            timers: Timers::default(),
            counters: NicCounters::default(),
            window_changes: WindowChanges::new(),
            schedule: RetransmitSchedule::new(&attributes),
            first,
        };
        bench.post(packets * 4_096);
        bench
    }

    /// The same with all packets sent and their timers started at 0.
    fn sent(packets: u32, set: impl FnOnce(&mut NicAttributes)) -> Self {
        let mut bench = Self::new(packets, set);
        for n in 0..u64::from(packets) {
            assert_eq!(bench.take().map(|out| out.psn), Some(bench.psn(n)));
            bench.serialized(n, 1, Instant::ZERO);
        }
        bench
    }

    fn post(&mut self, length: u32) {
        self.requester.post(work(length));
    }

    fn psn(&self, n: u64) -> PsnExt {
        self.first.plus(n)
    }

    fn with<R>(&mut self, f: impl FnOnce(&mut Requester, &mut Sending<'_>) -> R) -> R {
        let mut env = Sending {
            group: &mut self.group,
            timers: &mut self.timers,
            counters: &mut self.counters,
            schedule: self.schedule,
            window_changes: &mut self.window_changes,
        };
        f(&mut self.requester, &mut env)
    }

    /// What is sent next, its payload fetched at once.
    fn take(&mut self) -> Option<Outgoing> {
        match self.with(|requester, env| requester.take_next(env, Instant::ZERO))? {
            Turn::Resend(outgoing) => Some(outgoing),
            Turn::Fetch(segment) => Some(self.requester.on_payload(segment)),
        }
    }

    fn serialized(&mut self, n: u64, transmission: u32, at: Instant) {
        let psn = self.psn(n);
        self.with(|requester, env| requester.on_serialized(env, psn, transmission, at));
    }

    fn ack(&mut self, n: u64) -> Result<PsnExt, Refused> {
        let psn = self.psn(n).wire();
        self.with(|requester, env| requester.on_ack(env, psn, Instant::ZERO))
    }

    /// A SACK of everything up to packet `cumulative` (the count of packets
    /// received in order) and of the packets `listed` beyond it.
    fn sack(&mut self, cumulative: u64, listed: &[u64]) -> Result<(), Refused> {
        let base = listed.iter().min().copied().unwrap_or(cumulative);
        let seth = Seth {
            ce_mark: PathMark::None,
            subject: SackSubject::Data { ack_psn_offset: 0 },
            entropy: 0,
            source_qp: Qpn::masked(99),
            cumulative: self.psn(cumulative).prev().wire(),
            max_psn_range: 8,
            sack_offset: (base - cumulative + 1) as i16,
            bitmap: listed.iter().fold(0, |bits, n| bits | 1 << (n - base)),
        };
        let sack = (&seth, &CcState::default());
        self.with(|requester, env| requester.on_sack(env, sack, false, Instant::ZERO)).map(drop)
    }

    fn nack(&mut self, n: u64, reason: NackReason, rtx: bool) -> Result<NackNews, Refused> {
        let psn = self.psn(n).wire();
        let neth = Neth { reason, entropy: 0, source_qp: Qpn::masked(99), psn, timestamp: 0 };
        let news = self.with(|requester, env| requester.on_nack(env, &neth, rtx, Instant::ZERO))?;
        Ok(if let NackNews::Queued(_) = news { QUEUED } else { news })
    }

    /// Fires every live timer that is due at `at`; gives the first reason to fail.
    fn fire(&mut self, at: Instant) -> Option<QpErrorReason> {
        while let Some(timer) = self.timers.pop_due(at) {
            if self.requester.timer_is_live(&timer) {
                let verdict = self.with(|requester, env| requester.on_timer(env, timer, at));
                if let Err(reason) = verdict {
                    return Some(reason);
                }
            }
        }
        None
    }

    fn causes(&mut self) -> Vec<(u64, RetransmitCause)> {
        let first = self.first;
        core::iter::from_fn(|| self.take())
            .filter_map(|out| Some((out.psn.offset_from(first) as u64, out.cause?)))
            .collect()
    }
}

use RetransmitCause::{Nack, Rerequest, SackGap, Timeout};

// spec: SEG-1, SEG-3, SEG-6, QP-7
#[test]
fn messages_are_cut_into_segments_in_psn_order() {
    let mut bench = Bench::new(0, |_| ());
    bench.post(4_097);
    let taken: Vec<_> = core::iter::from_fn(|| bench.take()).map(|out| out.segment).collect();
    let told: Vec<_> = taken.iter().map(|s| (s.opcode.name(), s.offset, s.length, s.msn)).collect();
    assert_eq!(
        told,
        [("WRITE_ONLY", 0, 0, 0), ("WRITE_FIRST", 0, 4_096, 1), ("WRITE_LAST", 4_096, 1, 1),]
    );
    assert_eq!(bench.group.in_flight(), 60 + u64::from(PACKET) + 61);
}

// spec: SEG-5
#[test]
fn a_packet_retired_by_a_bitmap_still_counts_in_the_psn_window() {
    let mut bench = Bench::new(12, |a| a.max_psn_range = 8);
    for _ in 0..8 {
        assert!(bench.take().is_some());
    }
    assert!(!bench.requester.can_send(true));
    assert_eq!(bench.sack(0, &[1, 2, 3, 4, 5, 6, 7]), Ok(()));
    assert!(!bench.requester.can_send(true));
    assert_eq!(bench.ack(0), Ok(bench.psn(0)));
    assert!(bench.requester.can_send(true));
}

// spec: ACK-7, SACK-8
#[test]
fn acknowledgements_take_bytes_out_of_the_flight_once() {
    let mut bench = Bench::sent(8, |_| ());
    let flight = |bench: &Bench| bench.group.in_flight() / u64::from(PACKET);
    assert_eq!(flight(&bench), 8);
    bench.sack(2, &[4, 6]).unwrap();
    assert_eq!(flight(&bench), 4);
    bench.sack(2, &[4, 6]).unwrap();
    bench.sack(0, &[]).unwrap();
    assert_eq!(flight(&bench), 4);
    bench.ack(7).unwrap();
    assert_eq!(flight(&bench), 0);
}

// spec: ACK-9, DONE-1
#[test]
fn only_a_cumulative_ack_completes_a_message() {
    let mut bench = Bench::sent(2, |_| ());
    bench.sack(2, &[]).unwrap();
    assert_eq!(bench.requester.sent().span(), 0);
    assert_eq!(bench.requester.messages_open(), 1);
    let acknowledged = bench.ack(1).unwrap();
    assert!(bench.with(|requester, env| requester.pop_completed(env, acknowledged)).is_some());
    assert!(bench.with(|requester, env| requester.pop_completed(env, acknowledged)).is_none());
}

// spec: W-15
#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing() {
    let mut bench = Bench::sent(4, |_| ());
    assert_eq!(bench.ack(4), Err(Refused));
    assert_eq!(bench.sack(5, &[]), Err(Refused));
    assert_eq!(bench.sack(1, &[2, 4]), Err(Refused));
    assert_eq!(bench.nack(4, NackReason::Trimmed, false), Err(Refused));
    let before_first = bench.psn(0).minus(2).wire();
    assert_eq!(
        bench.with(|requester, env| requester.on_ack(env, before_first, Instant::ZERO)),
        Err(Refused)
    );
    assert_eq!(bench.group.in_flight(), 4 * u64::from(PACKET));
    assert_eq!(bench.requester.remote().qpn, Qpn::NONE);
    let none_yet = bench.psn(0).prev().wire();
    assert!(bench.with(|requester, env| requester.on_ack(env, none_yet, Instant::ZERO)).is_ok());
}

// spec: QP-6, W-11
#[test]
fn the_peers_number_is_learned_from_the_first_sack_or_nack_that_names_it() {
    let mut bench = Bench::sent(2, |_| ());
    bench.ack(0).unwrap();
    assert_eq!(bench.requester.remote().qpn, Qpn::NONE);
    bench.nack(1, NackReason::Trimmed, false).unwrap();
    assert_eq!(bench.requester.remote().qpn, Qpn::masked(99));
}

// spec: LOSS-1, LOSS-2
#[test]
fn a_gap_more_than_the_allowance_below_the_highest_listed_psn_is_lost() {
    let mut bench = Bench::sent(20, |a| a.sack_loss_min_retx_pkts = 8);
    bench.sack(0, &[8]).unwrap();
    assert!(bench.requester.retransmissions.is_empty());
    bench.sack(0, &[9]).unwrap();
    assert_eq!(bench.group.in_flight(), 17 * u64::from(PACKET));
    assert_eq!(bench.causes(), [(0, SackGap)]);
}

// spec: LOSS-2, LOSS-7
#[test]
fn gaps_queue_a_packet_at_most_once() {
    let mut bench = Bench::sent(20, |a| {
        a.sack_loss_min_retx_pkts = 4;
        a.sack_gap_recovery_gate = false;
    });
    bench.sack(0, &[5]).unwrap();
    assert_eq!(bench.causes(), [(0, SackGap)]);
    bench.sack(0, &[6, 7]).unwrap();
    assert_eq!(bench.causes(), [(1, SackGap), (2, SackGap)], "0 was queued before");
}

// spec: LOSS-4
#[test]
fn during_recovery_no_gaps_are_looked_for() {
    let mut bench = Bench::sent(20, |a| a.sack_loss_min_retx_pkts = 4);
    bench.sack(0, &[5]).unwrap();
    assert_eq!(bench.causes(), [(0, SackGap)]);
    bench.sack(1, &[10]).unwrap();
    assert_eq!(bench.causes(), []);
    bench.post(20 * 4_096);
    while bench.take().is_some() {}
    // The recovery point is the highest PSN assigned when recovery began: 19.
    bench.sack(19, &[30]).unwrap();
    assert_eq!(bench.causes(), []);
    bench.sack(20, &[31]).unwrap();
    let lost: Vec<_> = bench.causes().into_iter().map(|(n, _)| n).collect();
    assert_eq!(lost, [20, 21, 22, 23, 24, 25, 26]);
}

// spec: LOSS-5
#[test]
fn at_an_allowance_of_0_any_gap_is_lost_at_once() {
    let mut bench = Bench::sent(3, |a| a.sack_loss_min_retx_pkts = 0);
    bench.sack(0, &[1]).unwrap();
    assert_eq!(bench.causes(), [(0, SackGap)]);
}

// spec: LOSS-5
#[test]
fn at_an_allowance_of_the_window_less_one_gaps_never_find_a_loss() {
    let mut bench = Bench::new(64, |a| {
        a.max_psn_range = 64;
        a.sack_loss_min_retx_pkts = 63;
    });
    while bench.take().is_some() {}
    for n in 1..64 {
        bench.sack(0, &[n]).unwrap();
    }
    assert!(bench.requester.retransmissions.is_empty());
}

// spec: NACK-11, RTO-3, RTO-7
#[test]
fn a_nack_queues_an_outstanding_packet_and_stops_its_timer() {
    let mut bench = Bench::sent(3, |_| ());
    assert_eq!(bench.nack(1, NackReason::Trimmed, false), Ok(QUEUED));
    assert_eq!(bench.group.in_flight(), 2 * u64::from(PACKET));
    assert_eq!(bench.nack(1, NackReason::TrimmedLastHop, false), Ok(NackNews::Ignored));
    bench.sack(1, &[2]).unwrap();
    assert_eq!(bench.fire(at_us(150)), None);
    assert_eq!(bench.counters.rto, 0);
    assert_eq!(bench.causes(), [(1, Nack)]);
}

// spec: NACK-5, NACK-11
#[test]
fn nacks_for_acknowledged_packets_and_older_sendings_change_nothing() {
    let mut bench = Bench::sent(3, |_| ());
    bench.sack(1, &[2]).unwrap();
    assert_eq!(bench.nack(0, NackReason::Trimmed, false), Ok(NackNews::Ignored));
    assert_eq!(bench.nack(2, NackReason::Trimmed, false), Ok(NackNews::Ignored));
    assert_eq!(bench.nack(1, NackReason::Trimmed, true), Ok(NackNews::Ignored), "never sent so");
    bench.nack(1, NackReason::PsnOutOfWindow, false).unwrap();
    assert_eq!(bench.causes(), [(1, Nack)]);
    assert_eq!(bench.nack(1, NackReason::Trimmed, false), Ok(NackNews::Ignored), "older copy");
    assert_eq!(bench.nack(1, NackReason::Trimmed, true), Ok(QUEUED));
}

// spec: RTO-9, RTO-10
#[test]
fn the_nack_budget_counts_nacks_of_one_packet() {
    let mut bench = Bench::sent(2, |a| {
        a.linear_retry_count = 1;
        a.exponential_retry_count = 1;
    });
    for rtx in [false, true] {
        assert_eq!(bench.nack(0, NackReason::Trimmed, rtx), Ok(QUEUED));
        bench.take();
    }
    let fatal = NackNews::Fatal(QpErrorReason::NackRetryExceeded);
    assert_eq!(bench.nack(0, NackReason::Trimmed, true), Ok(fatal));
    assert_eq!(bench.nack(1, NackReason::Trimmed, false), Ok(QUEUED));
}

// spec: W-11
#[test]
fn a_packet_refused_for_lack_of_resources_waits_one_timeout() {
    let mut bench = Bench::sent(1, |_| ());
    assert_eq!(bench.nack(0, NackReason::NoResource, false), Ok(QUEUED));
    assert_eq!(bench.group.in_flight(), 0);
    assert_eq!(bench.causes(), []);
    bench.fire(at_us(149));
    assert_eq!(bench.causes(), []);
    bench.fire(at_us(150));
    assert_eq!(bench.causes(), [(0, Nack)]);
}

// spec: W-11, REL-2
#[test]
fn an_unexpected_event_is_fatal() {
    let mut bench = Bench::sent(1, |_| ());
    let fatal = NackNews::Fatal(QpErrorReason::RemoteAccessError);
    assert_eq!(bench.nack(0, NackReason::UnexpectedEvent, false), Ok(fatal));
}

// spec: RTO-1, RTO-2, RTO-7, RTO-12
#[test]
fn a_packet_whose_transmissions_time_out_follows_the_schedule() {
    let mut bench = Bench::sent(1, |_| ());
    let expiries = [150, 300, 450, 600, 750, 900, 1050, 1350, 1950, 3150];
    for (number, expiry) in expiries.into_iter().enumerate() {
        bench.fire(at_us(expiry - 1));
        assert_eq!(bench.causes(), []);
        bench.fire(at_us(expiry));
        assert_eq!(bench.causes(), [(0, Timeout)]);
        bench.serialized(0, number as u32 + 2, at_us(expiry));
    }
}

// spec: RTO-3
#[test]
fn no_timer_starts_for_a_copy_that_is_not_the_last_or_not_outstanding() {
    let mut bench = Bench::new(2, |_| ());
    bench.take();
    bench.take();
    bench.nack(0, NackReason::Trimmed, false).unwrap();
    let before = bench.timers.len();
    bench.serialized(0, 1, Instant::ZERO);
    assert_eq!(bench.timers.len(), before, "it waits for its retransmission");
    bench.take();
    bench.serialized(0, 1, Instant::ZERO);
    assert_eq!(bench.timers.len(), before, "an older copy");
    bench.sack(0, &[1]).unwrap();
    bench.serialized(1, 1, Instant::ZERO);
    assert_eq!(bench.timers.len(), before, "acknowledged meanwhile");
    bench.serialized(0, 2, Instant::ZERO);
    assert_eq!(bench.timers.len(), before + 1);
}

// spec: RTO-8, RTO-12
#[test]
fn with_a_budget_of_seven_the_eighth_timeout_is_fatal() {
    let mut bench = Bench::sent(1, |a| a.exponential_retry_count = 0);
    for number in 1..=7 {
        assert_eq!(bench.fire(at_us(150 * number)), None);
        assert!(bench.take().is_some());
        bench.serialized(0, number as u32 + 1, at_us(150 * number));
    }
    assert_eq!(bench.fire(at_us(1_349)), None);
    assert_eq!(bench.fire(at_us(1_350)), Some(QpErrorReason::RetryExceeded));
}

// spec: RTO-7, RTO-8
#[test]
fn a_nack_restarts_the_schedule_but_not_the_count() {
    let mut bench = Bench::sent(1, |a| {
        a.linear_retry_count = 1;
        a.exponential_retry_count = 1;
    });
    bench.fire(at_us(150));
    bench.take();
    bench.nack(0, NackReason::Trimmed, true).unwrap();
    bench.take();
    bench.serialized(0, 3, at_us(200));
    assert_eq!(bench.fire(at_us(350)), None, "timer 1 again");
    assert_eq!(bench.causes(), [(0, Timeout)]);
    bench.serialized(0, 4, at_us(350));
    assert_eq!(bench.fire(at_us(650)), Some(QpErrorReason::RetryExceeded));
}

// case D07: a timeout of 1 ns is a long row of checks only for who waits for them.
// spec: DONE-2, REL-5
#[test]
fn a_message_is_watched_only_once_all_its_packets_are_retired() {
    let mut bench = Bench::new(3, |a| a.initial_ack_timeout = Duration::from_ns(1));
    for _ in 0..3 {
        bench.take();
    }
    bench.sack(0, &[1, 2]).unwrap();
    assert_eq!(bench.timers.len(), 0, "the first may still be on its way");
    bench.sack(3, &[]).unwrap();
    assert_eq!(bench.timers.next(), Some(Instant::from_ps(2_000)));
    assert_eq!(bench.timers.len(), 1);
}

// spec: DONE-2
#[test]
fn checks_lie_whole_periods_after_send_complete() {
    let mut message = Message::new(work(1), PsnExt::first(Psn::masked(0)), 0, 1);
    message.on_send_complete(Instant::from_ps(7));
    let period = Duration::from_ps(10);
    for (now, check) in [(7, 17), (16, 17), (17, 17), (18, 27), (107, 107)] {
        assert_eq!(message.next_check(Instant::from_ps(now), period), Instant::from_ps(check));
    }
}

// spec: DONE-2, DONE-3
#[test]
fn a_message_acknowledged_by_sacks_only_is_asked_for_again() {
    let mut bench = Bench::sent(2, |_| ());
    bench.sack(2, &[]).unwrap();
    let before = bench.counters.rtx;
    bench.fire(at_us(299));
    assert_eq!(bench.causes(), []);
    bench.fire(at_us(300));
    let out = bench.take().unwrap();
    assert_eq!((out.psn, out.cause, out.transmission), (bench.psn(1), Some(Rerequest), None));
    assert_eq!((bench.counters.rtx, bench.group.in_flight()), (before, 0));
    bench.fire(at_us(600));
    assert_eq!(bench.causes(), [(1, Rerequest)]);
    bench.ack(1).unwrap();
    let acknowledged = bench.psn(1);
    assert!(bench.with(|requester, env| requester.pop_completed(env, acknowledged)).is_some());
    bench.fire(at_us(900));
    assert_eq!(bench.causes(), []);
}

// spec: DONE-2, NACK-8
#[test]
fn a_message_that_completes_is_asked_for_no_longer() {
    let mut bench = Bench::sent(2, |_| ());
    bench.sack(2, &[]).unwrap();
    bench.fire(at_us(300));
    assert!(bench.group.resend_waits());
    bench.ack(1).unwrap();
    let acknowledged = bench.psn(1);
    assert!(bench.with(|requester, env| requester.pop_completed(env, acknowledged)).is_some());
    assert!(!bench.group.resend_waits() && !bench.requester.can_send(true));
}

// spec: DONE-2, NACK-9
#[test]
fn a_full_window_holds_retransmissions_but_not_rerequests() {
    let mut bench = Bench::sent(2, |_| ());
    bench.sack(2, &[]).unwrap();
    bench.post(4_096);
    bench.group = QpGroup::new(PEER, &CongestionSettings::fixed(0), Instant::ZERO);
    assert!(!bench.requester.can_send(false));
    bench.fire(at_us(300));
    assert!(bench.requester.can_send(false));
    assert_eq!(bench.causes(), [(1, Rerequest)]);
}

// spec: ACK-7, NACK-8
#[test]
fn an_acknowledged_packet_leaves_the_queue_and_retransmissions_go_before_new_data() {
    let mut bench = Bench::sent(3, |_| ());
    bench.post(4_096);
    for n in [0, 2] {
        bench.nack(n, NackReason::Trimmed, false).unwrap();
    }
    bench.ack(0).unwrap();
    assert!(bench.group.resend_waits());
    let first = bench.first;
    let order: Vec<_> = core::iter::from_fn(|| bench.take())
        .map(|out| (out.psn.offset_from(first), out.cause))
        .collect();
    assert_eq!(order, [(2, Some(Nack)), (3, None)]);
    assert!(!bench.group.resend_waits());
}

// spec: RTO-11
#[test]
fn in_error_nothing_is_in_flight_and_nothing_is_sent() {
    let mut bench = Bench::sent(3, |_| ());
    bench.post(4_096);
    bench.nack(1, NackReason::Trimmed, false).unwrap();
    bench.requester.fail(&mut bench.group, QpErrorReason::RetryExceeded);
    assert_eq!(bench.group.in_flight(), 0);
    assert!(!bench.group.resend_waits());
    assert!(bench.take().is_none() && !bench.requester.has_work());
    assert_eq!(bench.fire(at_us(1_000_000)), None);
}

// case A05: more packets on one QP than PSNs have numbers.
// spec: SEG-5
#[test]
fn psns_wrap_without_end() {
    let mut bench = Bench::new(0, |a| a.mss = 1);
    bench.take();
    bench.ack(0).unwrap();
    bench.post((1 << 24) + 100);
    let mut last = bench.psn(0);
    while let Some(out) = bench.take() {
        assert_eq!(out.psn, last.next());
        last = out.psn;
        let wire = last.wire();
        bench.with(|requester, env| requester.on_ack(env, wire, Instant::ZERO)).unwrap();
    }
    assert_eq!(last, bench.psn((1 << 24) + 100));
}
