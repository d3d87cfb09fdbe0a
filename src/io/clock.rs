//! Protocol time on the host's clock: `real = protocol x TDF`, where TDF is
//! the time dilation factor. 1,000 turns 400 Gbit/s into 400 Mbit/s.

use core::num::NonZeroU32;
use std::time::{Duration as StdDuration, SystemTime};

use super::sys;
use crate::time::{Instant, PS_PER_NS};

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.
pub fn monotonic_ns() -> u64 {
    sys::monotonic_ns()
}

/// Maps CLOCK_MONOTONIC to protocol time and back.
// spec: TIME-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    epoch_ns: u64,
    tdf: NonZeroU32,
}

impl WallClock {
    /// A clock whose protocol time 0 is at `epoch_ns` of CLOCK_MONOTONIC and
    /// that runs `tdf` times slower than it; `None` for a `tdf` of 0.
    pub fn new(epoch_ns: u64, tdf: u32) -> Option<Self> {
        Some(Self { epoch_ns, tdf: NonZeroU32::new(tdf)? })
    }

    /// The time dilation factor, 1 or more.
    pub fn tdf(&self) -> u32 {
        self.tdf.get()
    }

    /// The protocol's time now: 0 until the epoch comes.
    pub fn now(&self) -> Instant {
        self.at(monotonic_ns())
    }

    /// The protocol's time at `monotonic_ns`, rounded down; 0 before the epoch.
    pub fn at(&self, monotonic_ns: u64) -> Instant {
        let (real_ns, tdf) = (monotonic_ns.saturating_sub(self.epoch_ns), u64::from(self.tdf()));
        // real_ns * 1,000 / tdf in two parts, so that nothing overflows early.
        let (whole, rest) = (real_ns / tdf, real_ns % tdf);
        let ps = whole.saturating_mul(PS_PER_NS).saturating_add(rest * PS_PER_NS / tdf);
        Instant::from_ps(ps)
    }

    /// The first nanosecond of CLOCK_MONOTONIC at which `instant` has come
    /// (saturating).
    pub fn to_monotonic_ns(&self, instant: Instant) -> u64 {
        let tdf = u64::from(self.tdf());
        // ps * tdf / 1,000 in two parts, the second rounded up.
        let (whole, rest) = (instant.as_ns(), instant.as_ps() % PS_PER_NS);
        let real_ns = whole.saturating_mul(tdf).saturating_add((rest * tdf).div_ceil(PS_PER_NS));
        self.epoch_ns.saturating_add(real_ns)
    }

    /// The calendar time of protocol time 0, as told now: for records.
    // spec: TIME-4
    #[allow(clippy::disallowed_methods)]
    pub fn epoch_wall(&self) -> SystemTime {
        self.epoch_seen_at(SystemTime::now(), monotonic_ns())
    }

    /// The calendar time of protocol time 0, given one reading of both clocks.
    fn epoch_seen_at(&self, wall: SystemTime, monotonic_ns: u64) -> SystemTime {
        match monotonic_ns.checked_sub(self.epoch_ns) {
            Some(since) => wall - StdDuration::from_nanos(since),
            None => wall + StdDuration::from_nanos(self.epoch_ns - monotonic_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn clock(epoch_ns: u64, tdf: u32) -> WallClock {
        WallClock::new(epoch_ns, tdf).expect("not zero")
    }

    // spec: TIME-2
    #[test]
    fn real_time_is_protocol_time_times_the_factor() {
        let clock = clock(5_000, 1_000);
        assert_eq!(clock.at(5_000), Instant::ZERO);
        assert_eq!(clock.at(5_000 + 83_480), Instant::ZERO + Duration::from_ps(83_480));
        assert_eq!(clock.to_monotonic_ns(Instant::from_ps(83_480)), 5_000 + 83_480);
        let timeout = Instant::ZERO + Duration::from_us(150);
        assert_eq!(clock.to_monotonic_ns(timeout), 5_000 + 150_000_000);
    }

    // spec: TIME-2
    #[test]
    fn a_factor_of_one_is_the_host_clock_and_zero_is_refused() {
        assert_eq!(clock(7, 1).at(7 + 42), Instant::ZERO + Duration::from_ns(42));
        assert_eq!(clock(7, 1).tdf(), 1);
        assert_eq!(WallClock::new(0, 0), None);
    }

    // spec: TIME-2
    #[test]
    fn a_deadline_is_never_mapped_to_before_it() {
        for tdf in [1, 3, 7, 999, 1_000, 4_001, u32::MAX] {
            let clock = clock(123_456_789, tdf);
            for ps in [0, 1, 999, 1_001, 83_480, 150_000_001, 1_000_000_000_007] {
                let (due, at) = (Instant::from_ps(ps), clock.to_monotonic_ns(Instant::from_ps(ps)));
                assert!(clock.at(at) >= due, "tdf {tdf}, {ps} ps");
                assert!(ps == 0 || clock.at(at - 1) < due, "tdf {tdf}, {ps} ps is late");
            }
        }
    }

    #[test]
    fn the_ends_of_time_saturate() {
        let clock = clock(1_000, 1_000);
        assert_eq!(clock.at(0), Instant::ZERO);
        assert_eq!(clock.to_monotonic_ns(Instant::MAX), u64::MAX);
        assert!(clock.at(u64::MAX) > Instant::ZERO + Duration::from_secs(18_000));
    }

    // spec: TIME-4
    #[test]
    fn the_epoch_has_a_calendar_time_before_and_after_it_came() {
        let (clock, wall) = (clock(2_000, 1_000), SystemTime::UNIX_EPOCH);
        let wall = wall + StdDuration::from_secs(100);
        assert_eq!(clock.epoch_seen_at(wall, 2_500), wall - StdDuration::from_nanos(500));
        assert_eq!(clock.epoch_seen_at(wall, 1_500), wall + StdDuration::from_nanos(500));
    }

    #[test]
    fn now_moves_on() {
        let clock = clock(monotonic_ns(), 1);
        let first = clock.now();
        while clock.now() == first {}
        assert!(clock.now() > first);
        assert!(clock.epoch_wall() > SystemTime::UNIX_EPOCH);
    }
}
