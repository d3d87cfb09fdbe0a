//! Protocol time: integers of picoseconds that never come from a clock.
//!
//! Every call into the protocol core carries `now`; every node names the next
//! instant at which it wants to be called. How protocol time maps to the clock
//! on the wall is the driver's business.
// spec: TIME-1

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds in a microsecond.
pub const PS_PER_US: u64 = 1_000_000;
/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in protocol time: picoseconds since the run's time 0 (213 days fit).
/// Arithmetic saturates at both ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A span of protocol time in picoseconds. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// Protocol time 0.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be named; no timer is ever due then.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after time 0.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since time 0.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since time 0, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The first whole microsecond at or after this instant (saturating).
    pub const fn ceil_to_us(self) -> Self {
        match self.0.checked_next_multiple_of(PS_PER_US) {
            Some(ps) => Self(ps),
            None => Self::MAX,
        }
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be named.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds (saturating).
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// A span of `us` microseconds (saturating).
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(PS_PER_US))
    }

    /// A span of `ms` milliseconds (saturating).
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000 * PS_PER_US))
    }

    /// A span of `s` seconds (saturating).
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(PS_PER_S))
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// This span rounded down to whole microseconds.
    pub const fn floor_to_us(self) -> Self {
        Self(self.0 - self.0 % PS_PER_US)
    }

    /// `self - other`, zero when `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}

/// Nanoseconds with up to three decimals: `83.48 ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ns(f, self.0)?;
        f.write_str(" ns")
    }
}

/// Nanoseconds since time 0 with up to three decimals, without a unit: the
/// form that records use.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ns(f, self.0)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{self}ns")
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_ns(f: &mut fmt::Formatter<'_>, ps: u64) -> fmt::Result {
    let (whole, part) = (ps / PS_PER_NS, ps % PS_PER_NS);
    if part == 0 {
        return write!(f, "{whole}");
    }
    let digits = format!("{part:03}");
    write!(f, "{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-1
    #[test]
    fn arithmetic_saturates_and_never_panics() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO - Duration::from_ns(1), Instant::ZERO);
        assert_eq!(Instant::ZERO.since(Instant::MAX), Duration::ZERO);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Instant::MAX.ceil_to_us(), Instant::MAX);
    }

    #[test]
    fn rounding_to_microseconds() {
        assert_eq!(Instant::from_ps(1).ceil_to_us().as_ps(), PS_PER_US);
        assert_eq!(Instant::from_ps(PS_PER_US).ceil_to_us().as_ps(), PS_PER_US);
        assert_eq!(Duration::from_ns(1_999).floor_to_us(), Duration::from_us(1));
    }

    #[test]
    fn prints_nanoseconds_with_up_to_three_decimals() {
        assert_eq!(Duration::from_ps(83_480).to_string(), "83.48 ns");
        assert_eq!(Instant::from_ps(1_005).to_string(), "1.005");
        assert_eq!(Instant::from_ps(2_000).to_string(), "2");
    }
}
