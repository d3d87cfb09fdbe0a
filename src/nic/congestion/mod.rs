//! Congestion control: how a QP group's window moves.
//!
//! An algorithm is one file here that implements [`CongestionControl`], and one
//! line in [`CongestionSettings::start`].

mod fixed;
mod nscc;

use core::fmt::Debug;

use crate::config::NicAttributes;
use crate::time::{Duration, Instant};
use crate::trace::WindowCause;
use crate::units::Rate;

use fixed::FixedWindow;
use nscc::{Constants, Nscc};

/// What a SACK tells congestion control.
// spec: CC-1, SACK-9
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackSignal {
    /// Bytes that the receiver has newly received.
    pub received: u64,
    /// The round trip that the SACK gave, when it gave one.
    pub rtt: Option<Duration>,
    /// Whether the path was marked as congested.
    pub marked: bool,
    /// The receiver penalty, 0 to 127.
    pub penalty: u8,
    /// Whether the window may return to what it was before the penalties.
    pub restore_cwnd: bool,
    /// Bytes in flight before the SACK retired anything.
    pub in_flight_before: u64,
    /// Bytes in flight after that.
    pub in_flight: u64,
}

/// What the NACK of a trimmed packet tells congestion control.
// spec: CC-5
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrimSignal {
    /// What the packet counted in flight, which it has left.
    pub bytes: u64,
    /// The round trip that the NACK gave, when it gave one.
    pub rtt: Option<Duration>,
    /// Bytes in flight without it.
    pub in_flight: u64,
}

/// How a loss was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The retransmission timer expired.
    Timeout,
    /// SACKs left a gap.
    SackGap,
}

/// What a rule did to a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowChange {
    /// The rule.
    pub cause: WindowCause,
    /// The window after it, in bytes.
    pub window: u64,
    /// Bytes in flight then.
    pub in_flight: u64,
}

/// Where an algorithm says what it did.
pub type WindowChanges = Vec<WindowChange>;

/// An algorithm with the state of one group. Everything but the window may be
/// left out: then nothing moves it.
pub trait CongestionControl: Debug + Send {
    /// The window, in bytes: as many may be in flight, and less than a packet more.
    // spec: SEG-6
    fn window(&self) -> u64;

    /// The round trip of an empty network, as far as is known.
    fn base_rtt(&self) -> Duration;

    /// The average queueing delay, where one is kept.
    fn average_delay(&self) -> Option<Duration> {
        None
    }

    /// A SACK has arrived.
    // spec: CC-1
    fn on_sack(&mut self, _now: Instant, _sack: &SackSignal, _changes: &mut WindowChanges) {}

    /// A probe was answered: `received` bytes had newly arrived, and `rtt` is the
    /// round trip without data.
    // spec: CC-1, RTT-4
    #[cfg_attr(not(test), expect(dead_code, reason = "no probe is sent yet"))]
    fn on_probe_response(
        &mut self,
        _received: u64,
        _rtt: Option<Duration>,
        _in_flight: u64,
        _changes: &mut WindowChanges,
    ) {
    }

    /// A packet in flight was trimmed.
    // spec: CC-5
    fn on_trim(&mut self, _now: Instant, _trim: &TrimSignal, _changes: &mut WindowChanges) {}

    /// A packet of `bytes` was lost; `in_flight` is what is left without it.
    // spec: CC-6
    fn on_loss(&mut self, _: Loss, _bytes: u64, _in_flight: u64, _changes: &mut WindowChanges) {}
}

/// How the groups of a NIC begin.
#[derive(Clone, Debug)]
pub struct CongestionSettings {
    nscc: Option<Constants>,
    max_window: u64,
    base_rtt: Duration,
    /// The window holds nothing back.
    pub pass_through: bool,
}

impl CongestionSettings {
    /// For a NIC with these attributes on a link of this rate.
    // spec: CC-10
    pub fn new(attributes: &NicAttributes, link: Rate) -> Self {
        let enabled = attributes.congestion.nscc_enable;
        Self {
            nscc: enabled.then(|| Constants::new(attributes, link)),
            max_window: attributes.max_window(link),
            base_rtt: attributes.config_base_rtt,
            pass_through: attributes.congestion.pass_through,
        }
    }

    /// A fixed window of `bytes`.
    #[cfg(test)]
    pub fn fixed(bytes: u64) -> Self {
        let base_rtt = Duration::from_us(6);
        Self { nscc: None, max_window: bytes, base_rtt, pass_through: false }
    }

    /// The state of a group that begins at `now`.
    // spec: SCHED-3
    pub fn start(&self, now: Instant) -> Box<dyn CongestionControl> {
        match &self.nscc {
            Some(constants) => Box::new(Nscc::new(*constants, self.max_window, now)),
            None => Box::new(FixedWindow { window: self.max_window, base_rtt: self.base_rtt }),
        }
    }
}
