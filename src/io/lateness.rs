//! How late a driver in the wall clock was.

use hdrhistogram::Histogram;

use crate::time::{Duration, Instant, PS_PER_S};

/// The longest lateness that is told apart from longer ones.
const MAX_PS: u64 = 1_000 * PS_PER_S;

/// A histogram of lateness in protocol time: when something was done against
/// when it was scheduled. Values are exact to three digits.
// spec: TIME-6
#[derive(Clone, Debug)]
pub struct Lateness {
    ps: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        let ps = Histogram::new_with_bounds(1, MAX_PS, 3).expect("constant bounds that are valid");
        Self { ps }
    }
}

impl Lateness {
    /// Counts an action that was due at `scheduled` and done at `actual`; one
    /// done early is not late. Lateness beyond 1,000 s counts as 1,000 s.
    pub fn record(&mut self, scheduled: Instant, actual: Instant) {
        self.ps.saturating_record(actual.since(scheduled).as_ps());
    }

    /// How many actions were counted.
    pub fn count(&self) -> u64 {
        self.ps.len()
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.quantile(0.50)
    }

    /// What 99 of 100 actions did not exceed.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// The latest action's lateness.
    pub fn max(&self) -> Duration {
        Duration::from_ps(self.ps.max())
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.ps.add(&other.ps).expect("all have the same bounds");
    }

    fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_ps(self.ps.value_at_quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-6
    #[test]
    fn lateness_is_actual_minus_scheduled_and_early_is_zero() {
        let mut lateness = Lateness::default();
        let due = Instant::from_ps(1_000_000);
        for late_ps in 1..=100 {
            lateness.record(due, due + Duration::from_ps(late_ps));
        }
        assert_eq!(lateness.p50(), Duration::from_ps(50));
        assert_eq!(lateness.p99(), Duration::from_ps(99));
        assert_eq!(lateness.max(), Duration::from_ps(100));

        let mut early = Lateness::default();
        early.record(due, Instant::ZERO);
        assert_eq!((early.count(), early.max()), (1, Duration::ZERO));
        early.record(Instant::ZERO, Instant::MAX);
        assert!(early.max() >= Duration::from_secs(1_000));
    }

    // spec: TIME-6
    #[test]
    fn merging_counts_everything_once() {
        let (mut one, mut other) = (Lateness::default(), Lateness::default());
        one.record(Instant::ZERO, Instant::from_ps(10));
        other.record(Instant::ZERO, Instant::from_ps(1_000));
        one.merge(&other);
        assert_eq!((one.count(), one.max()), (2, Duration::from_ps(1_000)));
        assert_eq!(other.count(), 1);
    }
}
