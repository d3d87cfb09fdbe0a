//! Dropped input, counted by cause.

use std::collections::BTreeMap;

/// How many packets were dropped for which cause. Causes are stable
/// `snake_case` names that reports print as they are.
// spec: W-14
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(BTreeMap<&'static str, u64>);

impl Drops {
    /// Counts one drop for `cause`.
    pub fn count(&mut self, cause: &'static str) {
        *self.0.entry(cause).or_default() += 1;
    }

    /// Drops for `cause` so far.
    pub fn of(&self, cause: &str) -> u64 {
        self.0.get(cause).copied().unwrap_or(0)
    }

    /// Drops for all causes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Every cause seen so far with its count, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(cause, count)| (*cause, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: W-14
    #[test]
    fn each_cause_has_its_own_count() {
        let mut drops = Drops::default();
        drops.count("bad_icrc");
        drops.count("bad_icrc");
        drops.count("unknown_qp");
        assert_eq!((drops.of("bad_icrc"), drops.of("unknown_qp"), drops.of("other")), (2, 1, 0));
        assert_eq!(drops.total(), 3);
        assert_eq!(drops.iter().collect::<Vec<_>>(), [("bad_icrc", 2), ("unknown_qp", 1)]);
    }
}
