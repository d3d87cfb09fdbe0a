//! Queue pair numbers and remote keys.

use core::fmt;

/// A queue pair number: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// No queue pair: the number is not known (yet).
    pub const NONE: Self = Self(0);

    /// The number `value`; `None` when it does not fit 24 bits.
    pub const fn new(value: u32) -> Option<Self> {
        if value < 1 << 24 { Some(Self(value)) } else { None }
    }

    /// The low 24 bits of `value`.
    pub const fn masked(value: u32) -> Self {
        Self(value & 0x00FF_FFFF)
    }

    /// The number, below 2^24.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// True for 0, 1 and 2, which are never allocated.
    // spec: W-7
    pub const fn is_reserved(self) -> bool {
        self.0 <= 2
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

/// The remote key (R_Key) of a memory region: 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RKey(pub u32);

impl fmt::Display for RKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: W-7
    #[test]
    fn numbers_fit_24_bits_and_the_first_three_are_reserved() {
        assert_eq!(Qpn::new(0xFF_FFFF).map(Qpn::value), Some(0xFF_FFFF));
        assert_eq!(Qpn::new(0x100_0000), None);
        assert_eq!(Qpn::masked(0xAB12_3456), Qpn(0x12_3456));
        assert!((0..3).all(|n| Qpn(n).is_reserved()));
        assert!(!Qpn(3).is_reserved());
        assert_eq!(Qpn(0x2A).to_string(), "0x00002a");
    }
}
