//! Packet sequence numbers: 24 bits on the wire, 64 bits inside.

use core::fmt;

/// How many PSNs there are: 2^24.
const MODULUS: u64 = 1 << 24;

/// A packet sequence number as the wire carries it. It has no order: after
/// 0xFF_FFFF comes 0. Compare with [`Psn::distance_from`], or extend it with
/// [`PsnExt::nearest`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Psn(u32);

impl Psn {
    /// The PSN `value`; `None` when it does not fit 24 bits.
    pub const fn new(value: u32) -> Option<Self> {
        if (value as u64) < MODULUS { Some(Self(value)) } else { None }
    }

    /// The low 24 bits of `value`.
    pub const fn masked(value: u64) -> Self {
        Self((value % MODULUS) as u32)
    }

    /// The number, below 2^24.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The PSN `n` further on, around the wrap.
    pub const fn plus(self, n: u32) -> Self {
        Self::masked(self.0.wrapping_add(n) as u64)
    }

    /// The PSN `n` before this one, around the wrap.
    pub const fn minus(self, n: u32) -> Self {
        Self::masked(self.0.wrapping_sub(n) as u64)
    }

    /// How far this PSN lies beyond `other` the short way around: -2^23 to
    /// 2^23 - 1, negative when it lies before.
    pub const fn distance_from(self, other: Self) -> i32 {
        // Bit 23 becomes the sign.
        (self.0.wrapping_sub(other.0) << 8) as i32 >> 8
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A PSN extended to 64 bits: ordered, and never wraps in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PsnExt(u64);

impl PsnExt {
    /// The extended number of a queue pair's first PSN: 2^24 + `psn`, so that
    /// the number before it exists.
    pub const fn first(psn: Psn) -> Self {
        Self(MODULUS + psn.0 as u64)
    }

    /// The extended number closest to `reference` whose low 24 bits are `psn`.
    /// Of two that are equally far it is the lower one.
    pub const fn nearest(psn: Psn, reference: Self) -> Self {
        Self(reference.0.saturating_add_signed(psn.distance_from(reference.wire()) as i64))
    }

    /// The number.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The 24 bits that go on the wire.
    pub const fn wire(self) -> Psn {
        Psn::masked(self.0)
    }

    /// The number `n` further on (saturating).
    pub const fn plus(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }

    /// The number `n` before this one (saturating at 0).
    pub const fn minus(self, n: u64) -> Self {
        Self(self.0.saturating_sub(n))
    }

    /// The number after this one.
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number before this one.
    pub const fn prev(self) -> Self {
        self.minus(1)
    }

    /// `self - other`, negative when `self` lies before `other`.
    pub const fn offset_from(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }
}

impl fmt::Display for PsnExt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
