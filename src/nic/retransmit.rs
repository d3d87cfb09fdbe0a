//! When a packet's retransmission timer expires, and how often it may.

use crate::config::NicAttributes;
use crate::time::{Duration, Instant};

/// The retransmission schedule and budget that a NIC's attributes give.
// spec: RTO-4, RTO-5, RTO-6, RTO-8
#[derive(Clone, Copy, Debug)]
pub struct RetransmitSchedule {
    base: Duration,
    linear: u32,
    fixed: bool,
    budget: Option<u32>,
}

impl RetransmitSchedule {
    /// An ExponentialRetryCount that means no budget at all.
    // spec: RTO-10
    const UNLIMITED: u32 = 25;

    /// The schedule of a NIC with these attributes.
    pub fn new(attributes: &NicAttributes) -> Self {
        let exponential = attributes.exponential_retry_count;
        Self {
            base: attributes.initial_ack_timeout,
            linear: attributes.linear_retry_count,
            fixed: attributes.fixed_rexmit_time_enable,
            budget: (exponential != Self::UNLIMITED)
                .then_some(attributes.linear_retry_count + exponential),
        }
    }

    /// How long timer `number` runs (the one that starts with a packet's first
    /// transmission is number 1): whole microseconds, at least one.
    // spec: RTO-4, RTO-5, RTO-6
    pub fn timeout(&self, number: u32) -> Duration {
        let doublings = if self.fixed { 0 } else { number.saturating_sub(self.linear) };
        let multiple = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        (self.base * multiple).floor_to_us().max(Duration::from_us(1))
    }

    /// When timer `number`, started at `start`, fires: the first whole
    /// microsecond at or after its end.
    // spec: RTO-4
    pub fn expiry(&self, start: Instant, number: u32) -> Instant {
        (start + self.timeout(number)).ceil_to_us()
    }

    /// Whether a packet that was retransmitted `count` times for one cause
    /// (timeouts, or NACKs) may be retransmitted once more for it.
    // spec: RTO-8, RTO-9, RTO-10
    pub fn allows(&self, count: u32) -> bool {
        self.budget.is_none_or(|budget| count < budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(set: impl FnOnce(&mut NicAttributes)) -> RetransmitSchedule {
        let mut attributes = NicAttributes::default();
        set(&mut attributes);
        RetransmitSchedule::new(&attributes)
    }

    // spec: RTO-5, RTO-12
    #[test]
    fn seven_linear_timers_then_doubling() {
        let schedule = schedule(|_| ());
        let mut at = 0;
        let times: Vec<u64> = (1..=10)
            .map(|number| {
                at += schedule.timeout(number).as_ns() / 1_000;
                at
            })
            .collect();
        assert_eq!(times, [150, 300, 450, 600, 750, 900, 1050, 1350, 1950, 3150]);
    }

    // spec: RTO-5
    #[test]
    fn without_linear_timers_the_first_is_already_doubled() {
        let schedule = schedule(|a| a.linear_retry_count = 0);
        assert_eq!(schedule.timeout(1), Duration::from_us(300));
        assert_eq!(schedule.timeout(2), Duration::from_us(600));
    }

    // spec: RTO-6
    #[test]
    fn fixed_timers_never_double() {
        let schedule = schedule(|a| a.fixed_rexmit_time_enable = true);
        assert_eq!(schedule.timeout(100), Duration::from_us(150));
    }

    // spec: RTO-4
    #[test]
    fn timers_are_whole_microseconds_on_the_grid_and_saturate() {
        let us = |n| Instant::ZERO + Duration::from_us(n);
        let short = schedule(|a| a.initial_ack_timeout = Duration::from_ns(1));
        assert_eq!(short.timeout(1), Duration::from_us(1));
        assert_eq!(short.expiry(us(3), 1), us(4));
        assert_eq!(short.expiry(us(3) + Duration::from_ps(1), 1), us(5));
        let odd = schedule(|a| a.initial_ack_timeout = Duration::from_ns(2_999));
        assert_eq!(odd.timeout(1), Duration::from_us(2));
        let long = schedule(|a| a.initial_ack_timeout = Duration::from_secs(8));
        assert!(long.timeout(200) > Duration::from_secs(1 << 20));
    }

    // spec: RTO-8, RTO-9, RTO-10
    #[test]
    fn the_budget_is_the_sum_of_both_counts() {
        let none = schedule(|a| a.exponential_retry_count = 0);
        assert!(none.allows(6) && !none.allows(7));
        let some = schedule(|a| a.exponential_retry_count = 24);
        assert!(some.allows(30) && !some.allows(31));
        let unlimited = schedule(|a| a.linear_retry_count = 0);
        assert!(unlimited.allows(u32::MAX));
    }
}
