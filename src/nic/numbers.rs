//! Which QP numbers this NIC gives out.

use crate::rng::Rng;
use crate::wire::qpn::Qpn;

/// Gives out QP numbers: from a random start upwards, so that a number comes
/// back only after all others.
// spec: W-7
#[derive(Debug)]
pub struct QpNumbers {
    start: u32,
    given: u64,
}

impl QpNumbers {
    const COUNT: u64 = 1 << 24;

    /// Starts at a random number.
    pub fn new(rng: &mut Rng) -> Self {
        Self::starting_at(rng.below(Self::COUNT) as u32)
    }

    /// Starts at `start`.
    pub fn starting_at(start: u32) -> Self {
        Self { start, given: 0 }
    }

    /// The next number that is neither reserved nor `live`; `None` when all are in use.
    // spec: W-7
    pub fn allocate(&mut self, live: impl Fn(Qpn) -> bool) -> Option<Qpn> {
        for _ in 0..Self::COUNT {
            let qpn = Qpn::masked((u64::from(self.start) + self.given) as u32);
            self.given += 1;
            if !qpn.is_reserved() && !live(qpn) {
                return Some(qpn);
            }
        }
        None
    }

    /// Whether `qpn` was given out before: by a QP that is gone when it is not live.
    // spec: RTO-11
    pub fn was_given(&self, qpn: Qpn) -> bool {
        let age = (u64::from(qpn.value()) + Self::COUNT - u64::from(self.start)) % Self::COUNT;
        !qpn.is_reserved() && age < self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case A16: reserved numbers are never given out.
    // spec: W-7
    #[test]
    fn numbers_count_up_past_live_and_reserved_ones() {
        let mut numbers = QpNumbers::starting_at(0xff_fffe);
        let mut take = |live: u32| numbers.allocate(|qpn| qpn.value() == live).map(Qpn::value);
        assert_eq!(take(0), Some(0xff_fffe));
        assert_eq!(take(0), Some(0xff_ffff));
        assert_eq!(take(0), Some(3));
        assert_eq!(take(4), Some(5));
    }

    // case A16
    // spec: W-7
    #[test]
    fn a_number_comes_back_only_after_all_others() {
        let mut numbers = QpNumbers::starting_at(7);
        let first = numbers.allocate(|_| false);
        let others = (0..).take_while(|_| numbers.allocate(|_| false) != first).count();
        assert_eq!(others, (1 << 24) - 3 - 1);
    }

    // spec: RTO-11
    #[test]
    fn knows_which_numbers_were_given() {
        let mut numbers = QpNumbers::starting_at(10);
        numbers.allocate(|_| false);
        assert!(numbers.was_given(Qpn::masked(10)));
        assert!(!numbers.was_given(Qpn::masked(11)) && !numbers.was_given(Qpn::masked(9)));
    }
}
