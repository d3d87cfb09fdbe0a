//! Network Signal-based Congestion Control (UET 1.0, 3.6.13): ECN marks and the
//! queueing delay say how a window moves.

#[cfg(test)]
mod tests;

use super::{CongestionControl, Loss, SackSignal, TrimSignal, WindowChange, WindowChanges};
use crate::config::NicAttributes;
use crate::time::{Duration, Instant};
use crate::trace::WindowCause;
use crate::units::Rate;

/// What stays the same for all groups of a NIC. Times are in picoseconds where
/// they are factors.
// spec: CC-2, CC-3, CC-4, CC-9
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// A nominal packet: the unit and the floor of the window, in bytes.
    mtu: f64,
    link: Rate,
    config_base_rtt: Duration,
    target: Duration,
    /// A delay below this is near 0.
    clear: Duration,
    /// Per byte received and picosecond below the target.
    alpha: f64,
    fair_increase: f64,
    fast_scale: f64,
    eta: f64,
    gamma: f64,
    max_cut: f64,
    delay_alpha: f64,
    quick_adapt_share: f64,
    /// Above this average delay quick adapt acts; only without trimming.
    quick_adapt_delay: Option<Duration>,
    base_rtt_margin: Duration,
    keep_max_window: bool,
}

impl Constants {
    /// Those of a NIC with these attributes on a link of this rate.
    pub fn new(attributes: &NicAttributes, link: Rate) -> Self {
        let set = &attributes.congestion;
        let config_base_rtt = attributes.config_base_rtt;
        let bits = |rate: Rate, time: Duration| rate.as_bps() as f64 * time.as_ps() as f64;
        let a = bits(link, config_base_rtt) / bits(set.reference_rate, set.reference_rtt);
        let mtu = attributes.nominal_packet() as f64;
        let per_ps = mtu / set.reference_rtt.as_ps() as f64;
        Self {
            mtu,
            link,
            config_base_rtt,
            target: attributes.target_queue_delay(),
            clear: set.target_queue_delay_margin,
            alpha: set.alpha_multiplier.as_f64() * a * per_ps,
            fair_increase: set.fair_increase_multiplier.as_f64() * mtu * a,
            fast_scale: set.fast_increase_multiplier.as_f64() * 0.25 * a,
            eta: set.eta_multiplier.as_f64() * mtu * a,
            gamma: set.gamma.as_f64(),
            max_cut: set.max_decrease_jump.as_f64(),
            delay_alpha: set.delay_alpha.as_f64(),
            quick_adapt_share: 0.5_f64.powi(set.quick_adapt_gate as i32),
            quick_adapt_delay: (!attributes.trimming_enabled).then_some(set.quick_adapt_threshold),
            base_rtt_margin: set.base_rtt_margin,
            keep_max_window: set.keep_configured_max_window,
        }
    }
}

/// The state of one group.
#[derive(Clone, Debug)]
pub struct Nscc {
    constants: Constants,
    cwnd: f64,
    max_window: f64,
    base_rtt: Duration,
    /// Delays are measured against this.
    min_rtt: Duration,
    /// The average queueing delay, in picoseconds.
    average: f64,
    /// Bytes received since the last adjustment.
    received: u64,
    /// What the next adjustment adds, times the window.
    fair: f64,
    proportional: f64,
    /// Bytes received in a row without delay.
    clear_bytes: u64,
    fast: bool,
    last_adjust: Instant,
    last_cut: Instant,
    quick: QuickAdapt,
    /// The window before the receiver's penalties.
    saved: Option<f64>,
}

/// What quick adapt remembers.
#[derive(Clone, Copy, Debug, Default)]
struct QuickAdapt {
    /// When its window of observation ends; `None` before the first one.
    end: Option<Instant>,
    /// Bytes received in it.
    achieved: u64,
    /// A packet was trimmed.
    trigger: bool,
    /// Bytes that were in flight when it acted last: what is heard of them is old.
    to_ignore: u64,
    /// Bytes that have been heard of since.
    ignored: u64,
}

/// Receiving more than this many packets brings an adjustment forward.
// spec: CC-3
const ADJUST_PACKETS: f64 = 8.0;

/// The penalty that takes as much from the window as was received.
// spec: CC-7
const FULL_PENALTY: f64 = 128.0;

impl Nscc {
    /// A group that begins at `now` with a window of `max_window` bytes.
    pub fn new(constants: Constants, max_window: u64, now: Instant) -> Self {
        Self {
            constants,
            cwnd: max_window as f64,
            max_window: max_window as f64,
            base_rtt: constants.config_base_rtt,
            min_rtt: constants.config_base_rtt,
            average: 0.0,
            received: 0,
            fair: 0.0,
            proportional: 0.0,
            clear_bytes: 0,
            fast: false,
            last_adjust: now,
            last_cut: now,
            quick: QuickAdapt::default(),
            saved: None,
        }
    }

    /// `cause` has changed the window, which is brought into its bounds.
    // spec: CC-11
    fn changed(&mut self, cause: WindowCause, in_flight: u64, changes: &mut WindowChanges) {
        self.cwnd = self.cwnd.min(self.max_window).max(self.constants.mtu);
        changes.push(WindowChange { cause, window: self.window(), in_flight });
    }

    fn count_received(&mut self, bytes: u64) {
        self.quick.ignored += bytes;
        self.quick.achieved += bytes;
        self.received += bytes;
    }

    // spec: CC-7
    fn apply_penalty(&mut self, sack: &SackSignal, changes: &mut WindowChanges) {
        if sack.penalty > 0 {
            self.saved.get_or_insert(self.cwnd);
            let cut = f64::from(sack.penalty) * sack.received as f64 / FULL_PENALTY;
            self.cwnd = self.cwnd.min(sack.in_flight_before as f64) - cut;
            self.changed(WindowCause::Penalty, sack.in_flight, changes);
        } else if sack.restore_cwnd
            && let Some(saved) = self.saved.take()
        {
            self.cwnd = saved;
            self.changed(WindowCause::Restore, sack.in_flight, changes);
        }
    }

    /// The base RTT falls to what is clearly shorter, and never rises.
    // spec: CC-9
    fn lower_base_rtt(&mut self, rtt: Duration, in_flight: u64, changes: &mut WindowChanges) {
        let Constants { base_rtt_margin, keep_max_window, link, mtu, .. } = self.constants;
        if rtt + base_rtt_margin >= self.base_rtt {
            return;
        }
        self.base_rtt = rtt + base_rtt_margin;
        self.min_rtt = rtt;
        if !keep_max_window {
            let bdp = link.bytes_in(self.base_rtt) as f64;
            self.max_window = (1.5 * bdp).max(mtu);
        }
        self.changed(WindowCause::BaseRtt, in_flight, changes);
    }

    /// Takes a queueing delay into the average.
    fn average_in(&mut self, delay: Duration) {
        self.average += self.constants.delay_alpha * (delay.as_ps() as f64 - self.average);
    }

    /// Whether what was heard is about packets that quick adapt has answered
    /// already, or it acts now: nothing else then changes the window.
    // spec: CC-4
    fn quick_adapt(
        &mut self,
        now: Instant,
        (lost, marked): (bool, bool),
        in_flight: u64,
        changes: &mut WindowChanges,
    ) -> bool {
        let hit = if marked && self.quick.ignored < self.quick.to_ignore {
            true
        } else if self.quick.end.is_none_or(|end| now >= end) {
            let acts = self.quick.end.is_some() && self.quick_adapt_acts(lost);
            if acts {
                self.cwnd = self.quick.achieved as f64;
                (self.quick.to_ignore, self.quick.ignored) = (in_flight, 0);
                self.quick.trigger = false;
                self.changed(WindowCause::QuickAdapt, in_flight, changes);
            }
            self.quick.achieved = 0;
            self.quick.end = Some(now + self.base_rtt + self.constants.target);
            acts
        } else {
            false
        };
        if hit {
            self.forget_increase();
        }
        hit
    }

    /// Whether too little got through, with a reason to believe that it is stuck.
    // spec: CC-4
    fn quick_adapt_acts(&self, lost: bool) -> bool {
        let slow = |most: Duration| self.average > most.as_ps() as f64;
        let reason =
            self.quick.trigger || lost || self.constants.quick_adapt_delay.is_some_and(slow);
        reason && (self.quick.achieved as f64) < self.max_window * self.constants.quick_adapt_share
    }

    fn forget_increase(&mut self) {
        (self.fair, self.proportional, self.received) = (0.0, 0.0, 0);
    }

    /// The one routine that a SACK runs.
    // spec: CC-2
    fn react(
        &mut self,
        now: Instant,
        sack: &SackSignal,
        delay: Duration,
        changes: &mut WindowChanges,
    ) {
        let above = delay >= self.constants.target;
        match (sack.marked, above) {
            (true, true) => self.decrease(now, sack.in_flight, changes),
            (true, false) => {}
            // spec: CC-7
            _ if sack.penalty > 0 => {}
            (false, true) => self.fair += self.constants.fair_increase * sack.received as f64,
            (false, false) => self.increase(sack, delay, changes),
        }
    }

    /// Fast after a window without delay, else in proportion to what is left to
    /// the target.
    // spec: CC-2
    fn increase(&mut self, sack: &SackSignal, delay: Duration, changes: &mut WindowChanges) {
        let received = sack.received as f64;
        if delay < self.constants.clear {
            self.clear_bytes += sack.received;
            if self.fast || self.clear_bytes as f64 > self.cwnd {
                self.fast = true;
                self.cwnd += received * self.constants.fast_scale;
                return self.changed(WindowCause::Fast, sack.in_flight, changes);
            }
        } else {
            self.clear_bytes = 0;
        }
        self.fast = false;
        let below = self.constants.target.saturating_sub(delay).as_ps() as f64;
        self.proportional += self.constants.alpha * received * below;
    }

    // spec: CC-2
    fn decrease(&mut self, now: Instant, in_flight: u64, changes: &mut WindowChanges) {
        self.fast = false;
        self.clear_bytes = 0;
        let target = self.constants.target.as_ps() as f64;
        if self.average > target && now.since(self.last_cut) > self.base_rtt {
            let share = 1.0 - self.constants.gamma * (self.average - target) / self.average;
            self.cwnd *= share.max(self.constants.max_cut);
            self.last_cut = now;
            self.changed(WindowCause::Decrease, in_flight, changes);
        }
    }

    /// Adds what has been gathered, once a round trip or every eight packets.
    // spec: CC-3
    fn adjust(&mut self, now: Instant, in_flight: u64, changes: &mut WindowChanges) {
        let period = now.since(self.last_adjust) >= self.base_rtt;
        if !period && self.received as f64 <= ADJUST_PACKETS * self.constants.mtu {
            return;
        }
        let cwnd = self.cwnd;
        let eta = if period { self.constants.eta } else { 0.0 };
        for (cause, bytes) in [
            (WindowCause::Fair, self.fair / cwnd),
            (WindowCause::Proportional, self.proportional / cwnd),
            (WindowCause::Eta, eta),
        ] {
            if bytes > 0.0 {
                self.cwnd += bytes;
                self.changed(cause, in_flight, changes);
            }
        }
        if period {
            self.last_adjust = now;
        }
        self.forget_increase();
    }

    /// Takes a packet of `bytes` off the window.
    // spec: CC-5, CC-6
    fn take_off(
        &mut self,
        cause: WindowCause,
        bytes: u64,
        in_flight: u64,
        changes: &mut WindowChanges,
    ) {
        self.cwnd -= bytes as f64;
        self.changed(cause, in_flight, changes);
    }
}

impl CongestionControl for Nscc {
    /// Rounded up, so that comparing it with whole bytes in flight is exact.
    fn window(&self) -> u64 {
        self.cwnd.ceil() as u64
    }

    fn base_rtt(&self) -> Duration {
        self.base_rtt
    }

    fn average_delay(&self) -> Option<Duration> {
        Some(Duration::from_ps(self.average.round() as u64))
    }

    // spec: CC-1
    fn on_sack(&mut self, now: Instant, sack: &SackSignal, changes: &mut WindowChanges) {
        self.count_received(sack.received);
        self.apply_penalty(sack, changes);
        let Some(rtt) = sack.rtt else { return };
        self.lower_base_rtt(rtt, sack.in_flight, changes);
        let delay = rtt.saturating_sub(self.min_rtt);
        self.average_in(delay);
        if self.quick_adapt(now, (false, sack.marked), sack.in_flight, changes) {
            return;
        }
        self.react(now, sack, delay, changes);
        // spec: CC-7
        if sack.penalty == 0 {
            self.adjust(now, sack.in_flight, changes);
        }
    }

    // spec: CC-1, RTT-4
    fn on_probe_response(
        &mut self,
        received: u64,
        rtt: Option<Duration>,
        in_flight: u64,
        changes: &mut WindowChanges,
    ) {
        self.count_received(received);
        if let Some(rtt) = rtt {
            self.lower_base_rtt(rtt, in_flight, changes);
        }
    }

    // spec: CC-5
    fn on_trim(&mut self, now: Instant, trim: &TrimSignal, changes: &mut WindowChanges) {
        if let Some(rtt) = trim.rtt {
            self.lower_base_rtt(rtt, trim.in_flight, changes);
        }
        self.average_in(self.constants.config_base_rtt);
        self.quick.ignored += trim.bytes;
        self.quick.trigger = true;
        if !self.quick_adapt(now, (true, true), trim.in_flight, changes) {
            self.take_off(WindowCause::Trim, trim.bytes, trim.in_flight, changes);
        }
    }

    // spec: CC-6
    fn on_loss(&mut self, loss: Loss, bytes: u64, in_flight: u64, changes: &mut WindowChanges) {
        self.quick.ignored += bytes;
        let cause = match loss {
            Loss::Timeout => WindowCause::Timeout,
            Loss::SackGap => WindowCause::SackGap,
        };
        self.take_off(cause, bytes, in_flight, changes);
    }
}
