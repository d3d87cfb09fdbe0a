//! The NIC's timers: instants at which something is looked at again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Instant;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

/// What a timer is for. A timer is not taken back: when it fires, its QP says
/// whether it still means something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// A packet's retransmission timer.
    Retransmit {
        /// The sending QP.
        qpn: Qpn,
        /// The packet.
        psn: PsnExt,
        /// Which of its transmissions started the timer.
        transmission: u32,
    },
    /// A packet that was refused for lack of resources may go again.
    Backoff {
        /// The sending QP.
        qpn: Qpn,
        /// The packet.
        psn: PsnExt,
        /// Which of its transmissions was refused.
        transmission: u32,
    },
    /// A message may have been acknowledged by SACKs only.
    Rerequest {
        /// The sending QP.
        qpn: Qpn,
        /// The message's last packet.
        last: PsnExt,
    },
}

impl Timer {
    /// The sending QP it belongs to.
    pub const fn qpn(&self) -> Qpn {
        match self {
            Self::Retransmit { qpn, .. }
            | Self::Backoff { qpn, .. }
            | Self::Rerequest { qpn, .. } => *qpn,
        }
    }
}

/// Timers in the order in which they fire; those of one instant in the order in
/// which they were set.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u64, Timer)>>,
    set: u64,
}

impl Timers {
    /// Sets a timer that fires at `at`.
    pub fn set(&mut self, at: Instant, timer: Timer) {
        self.heap.push(Reverse((at, self.set, timer)));
        self.set += 1;
    }

    /// When the next one fires.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next one that is due at `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse((_, _, timer))| timer)
    }

    /// Takes timers that `dead` disowns from the front, so that none is left
    /// when nothing is outstanding.
    pub fn discard_front(&mut self, dead: impl Fn(&Timer) -> bool) {
        while self.heap.peek().is_some_and(|Reverse((_, _, timer))| dead(timer)) {
            self.heap.pop();
        }
    }

    /// How many are set.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::psn::Psn;

    fn timer(psn: u64) -> Timer {
        Timer::Rerequest { qpn: Qpn::masked(3), last: PsnExt::first(Psn::masked(psn)) }
    }

    #[test]
    fn fire_in_order_of_time_then_of_setting() {
        let mut timers = Timers::default();
        timers.set(Instant::from_ps(20), timer(1));
        timers.set(Instant::from_ps(10), timer(9));
        timers.set(Instant::from_ps(20), timer(0));
        assert_eq!(timers.pop_due(Instant::from_ps(9)), None);
        assert_eq!(timers.pop_due(Instant::from_ps(20)), Some(timer(9)));
        assert_eq!(timers.pop_due(Instant::from_ps(20)), Some(timer(1)));
        assert_eq!(timers.pop_due(Instant::from_ps(20)), Some(timer(0)));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn disowned_timers_leave_from_the_front() {
        let mut timers = Timers::default();
        timers.set(Instant::from_ps(1), timer(1));
        timers.set(Instant::from_ps(2), timer(2));
        timers.discard_front(|t| *t == timer(1));
        assert_eq!(timers.next(), Some(Instant::from_ps(2)));
    }
}
