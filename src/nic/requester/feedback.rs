//! What acknowledgements, SACKs and NACKs do to the sending side.

use super::{QpErrorReason, Requester, Sending};
use crate::nic::congestion::{Loss, SackSignal, TrimSignal};
use crate::nic::responder::RECEIVED_UNIT;
use crate::nic::rtt::{Echo, RoundTrip};
use crate::nic::sent_packets::SentState;
use crate::nic::timers::Timer;
use crate::time::Instant;
use crate::trace::RetransmitCause;
use crate::wire::cc_state::CcState;
use crate::wire::neth::{NackReason, Neth};
use crate::wire::psn::{Psn, PsnExt};
use crate::wire::qpn::Qpn;
use crate::wire::seth::{PathMark, Seth};

/// A control packet that names what cannot be: it changes nothing.
// spec: W-15
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// What a NACK did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NackNews {
    /// The packet will be sent again; the NACK can have given a sample.
    Queued(Option<RoundTrip>),
    /// Nothing but the path mark counts: acknowledged, queued already, or about
    /// an older sending.
    Ignored,
    /// The QP must go into the error state.
    Fatal(QpErrorReason),
}

impl Requester {
    /// The peer told its number for this QP; 0 tells nothing, and the first
    /// number stays.
    // spec: QP-6, W-11
    fn learn_remote(&mut self, qpn: Qpn) {
        if self.remote.qpn == Qpn::NONE {
            self.remote.qpn = qpn;
        }
    }

    /// The full number of a cumulative PSN, if it is one that this QP can have:
    /// from the PSN before its first up to the highest sent.
    // spec: W-15
    fn possible_cumulative(&self, psn: Psn) -> Result<PsnExt, Refused> {
        let full = PsnExt::nearest(psn, self.sent.cumulative());
        let possible = self.first.prev()..self.sent.next_psn();
        if possible.contains(&full) { Ok(full) } else { Err(Refused) }
    }

    /// A cumulative ACK carried `psn`; its full number is given back, for
    /// [`Self::pop_completed`].
    ///
    /// # Errors
    /// When the PSN is none that was sent.
    // spec: ACK-7, ACK-8, W-15
    pub fn on_ack(
        &mut self,
        env: &mut Sending<'_>,
        psn: Psn,
        now: Instant,
    ) -> Result<PsnExt, Refused> {
        let cumulative = self.possible_cumulative(psn)?;
        self.retire_through(env, cumulative);
        self.watch_retired(env, now);
        Ok(cumulative)
    }

    /// A SACK arrived, whose RTX bit is `retransmission`; its sample is given back,
    /// when it gave one.
    ///
    /// # Errors
    /// When its cumulative PSN or its bitmap names what was not sent.
    // spec: SACK-8, SACK-9, LOSS-1, RTT-2, W-15
    pub fn on_sack(
        &mut self,
        env: &mut Sending<'_>,
        (seth, cc_state): (&Seth, &CcState),
        retransmission: bool,
        now: Instant,
    ) -> Result<Option<RoundTrip>, Refused> {
        let cumulative = self.possible_cumulative(seth.cumulative)?;
        let base = beside(cumulative, seth.sack_offset);
        let listed = |bit: u32| base.plus(u64::from(bit));
        let highest = (seth.bitmap != 0).then(|| listed(63 - seth.bitmap.leading_zeros()));
        if highest.is_some_and(|psn| psn >= self.sent.next_psn()) {
            return Err(Refused);
        }
        self.learn_remote(seth.source_qp);
        let echo = Echo::of_sack(self.limits.rtt_mode, cc_state);
        let drew = seth.subject.offset().map(|offset| beside(cumulative, offset));
        let sample = drew.and_then(|psn| self.sample(env, psn, retransmission, echo, now));
        let in_flight_before = env.group.in_flight();
        self.retire_through(env, cumulative);
        let mut bits = seth.bitmap;
        while bits != 0 {
            self.retire(env, listed(bits.trailing_zeros()));
            bits &= bits - 1;
        }
        let signal = SackSignal {
            received: self.newly_received(cc_state),
            rtt: sample.map(|sample| sample.time),
            marked: matches!(seth.ce_mark, PathMark::SkipOnce | PathMark::AlwaysSkip),
            penalty: cc_state.penalty,
            restore_cwnd: cc_state.restore_cwnd,
            in_flight_before,
            in_flight: env.group.in_flight(),
        };
        env.group.tell_congestion(|control| control.on_sack(now, &signal, env.window_changes));
        if let Some(highest) = highest {
            self.find_gaps(env, highest);
        }
        self.watch_retired(env, now);
        Ok(sample)
    }

    /// Bytes that the peer has received since it was last heard; SACKs that were
    /// overtaken tell nothing.
    // spec: CC-1
    fn newly_received(&mut self, cc_state: &CcState) -> u64 {
        const UNITS: u32 = 1 << 24;
        let new = cc_state.received_units.wrapping_sub(self.received_units) % UNITS;
        if new >= UNITS / 2 {
            return 0;
        }
        self.received_units = cc_state.received_units;
        u64::from(new) * RECEIVED_UNIT
    }

    /// `psn`, which is not in flight any more, was lost.
    // spec: CC-6, LOSS-3
    pub(super) fn tell_loss(&self, env: &mut Sending<'_>, psn: PsnExt, loss: Loss) {
        let bytes = self.sent.get(psn).map_or(0, |packet| u64::from(packet.flight_bytes));
        let in_flight = env.group.in_flight();
        env.group.tell_congestion(|control| {
            control.on_loss(loss, bytes, in_flight, env.window_changes);
        });
    }

    /// What was heard at `now` about `psn` gives a sample, when it is clear which
    /// sending is meant and that one has given none before.
    // spec: RTT-1, RTT-2, CC-8
    fn sample(
        &mut self,
        env: &mut Sending<'_>,
        psn: PsnExt,
        retransmission: bool,
        echo: Echo,
        now: Instant,
    ) -> Option<RoundTrip> {
        let left = self.send_times.take(psn, retransmission)?;
        let time = echo.round_trip(left, now);
        env.counters.rtt_samples += 1;
        env.group.on_rtt_sample(time);
        Some(RoundTrip { psn, time })
    }

    /// Everything at or below `cumulative` is acknowledged; the PSN window moves.
    // spec: ACK-7, SEG-5
    fn retire_through(&mut self, env: &mut Sending<'_>, cumulative: PsnExt) {
        while let Some((psn, packet)) = self.sent.pop_through(cumulative) {
            self.forget(env, psn, packet.state, packet.flight_bytes);
        }
        if self.recovery.is_some_and(|point| cumulative >= point) {
            self.recovery = None;
        }
    }

    /// `psn` is acknowledged by a bitmap.
    // spec: SACK-8
    fn retire(&mut self, env: &mut Sending<'_>, psn: PsnExt) {
        let Some(packet) = self.sent.get_mut(psn) else { return };
        let state = core::mem::replace(&mut packet.state, SentState::Retired);
        let bytes = packet.flight_bytes;
        self.forget(env, psn, state, bytes);
    }

    /// Takes a packet that stood at `state` out of the flight or the queue.
    // spec: ACK-7
    fn forget(&mut self, env: &mut Sending<'_>, psn: PsnExt, state: SentState, bytes: u32) {
        match state {
            SentState::InFlight => env.group.remove_flight(bytes),
            SentState::Queued(_) => {
                let place = self.retransmissions.iter().position(|queued| *queued == psn);
                if place.and_then(|index| self.retransmissions.remove(index)).is_some() {
                    env.group.remove_retransmissions(1);
                }
            }
            SentState::BackingOff | SentState::Retired => {}
        }
    }

    /// Queues what is outstanding far below `highest`, the highest PSN that a
    /// SACK listed.
    // spec: LOSS-1, LOSS-2, LOSS-3, LOSS-4, LOSS-5, LOSS-6, LOSS-7
    fn find_gaps(&mut self, env: &mut Sending<'_>, highest: PsnExt) {
        if self.recovery.is_some() && self.limits.recovery_gate {
            return;
        }
        let allowance = u64::from(self.limits.sack_loss_min_retx_pkts);
        let mut psn = self.sent.cumulative().next();
        let mut found = false;
        while psn.plus(allowance) < highest {
            if let Some(packet) = self.sent.get_mut(psn)
                && packet.state == SentState::InFlight
                && !packet.gap_queued
            {
                packet.gap_queued = true;
                self.queue(env, psn, RetransmitCause::SackGap);
                self.tell_loss(env, psn, Loss::SackGap);
                found = true;
            }
            psn = psn.next();
        }
        if found {
            self.recovery = Some(self.sent.next_psn().prev());
        }
    }

    /// A NACK arrived; `retransmission` is the RTX bit that it copied. One that
    /// changes nothing gives no sample either.
    ///
    /// # Errors
    /// When it names a packet that was not sent.
    // spec: NACK-5, NACK-7, NACK-11, RTO-9, W-11, W-15, CC-5, CC-6
    pub fn on_nack(
        &mut self,
        env: &mut Sending<'_>,
        neth: &Neth,
        retransmission: bool,
        now: Instant,
    ) -> Result<NackNews, Refused> {
        let psn = PsnExt::nearest(neth.psn, self.sent.cumulative());
        if !(self.first..self.sent.next_psn()).contains(&psn) {
            return Err(Refused);
        }
        self.learn_remote(neth.source_qp);
        if neth.reason == NackReason::UnexpectedEvent {
            return Ok(NackNews::Fatal(QpErrorReason::RemoteAccessError));
        }
        let Some(packet) = self.sent.get_mut(psn) else { return Ok(NackNews::Ignored) };
        if packet.state != SentState::InFlight || packet.retransmission != retransmission {
            return Ok(NackNews::Ignored);
        }
        if !env.schedule.allows(packet.nacks) {
            return Ok(NackNews::Fatal(QpErrorReason::NackRetryExceeded));
        }
        packet.nacks += 1;
        let bytes = u64::from(packet.flight_bytes);
        match neth.reason {
            NackReason::Trimmed | NackReason::TrimmedLastHop | NackReason::PsnOutOfWindow => {
                self.queue(env, psn, RetransmitCause::Nack);
            }
            _ => {
                packet.state = SentState::BackingOff;
                env.group.remove_flight(packet.flight_bytes);
                let transmission = packet.transmissions;
                let timer = Timer::Backoff { qpn: self.local.qpn, psn, transmission };
                env.timers.set(now + self.limits.initial_ack_timeout, timer);
            }
        }
        let echo = Echo::of_nack(self.limits.rtt_mode, neth);
        let sample = echo.and_then(|echo| self.sample(env, psn, retransmission, echo, now));
        if matches!(neth.reason, NackReason::Trimmed | NackReason::TrimmedLastHop) {
            let rtt = sample.map(|sample| sample.time);
            let trim = TrimSignal { bytes, rtt, in_flight: env.group.in_flight() };
            env.group.tell_congestion(|control| control.on_trim(now, &trim, env.window_changes));
        }
        Ok(NackNews::Queued(sample))
    }
}

/// The PSN `offset` from `psn`, which may lie before it.
fn beside(psn: PsnExt, offset: i16) -> PsnExt {
    psn.minus(offset.min(0).unsigned_abs().into()).plus(offset.max(0).unsigned_abs().into())
}
