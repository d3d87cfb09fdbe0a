//! Rates and the spelling of quantities in scenario files: `400 Gbps`,
//! `64 MiB`, `150 us`.

use core::fmt;

use crate::time::{Duration, PS_PER_S};

/// A link or port rate in bits per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bps` bits per second; `None` for zero.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// A rate of `gbps` times 10^9 bits per second.
    ///
    /// # Panics
    /// When `gbps` is zero or the rate does not fit: for constants.
    pub const fn gbps(gbps: u64) -> Self {
        match gbps.checked_mul(1_000_000_000) {
            Some(bps) if bps > 0 => Self(bps),
            _ => panic!("a rate is 1 Gbps or more and fits 64 bits"),
        }
    }

    /// A rate of `mbps` times 10^6 bits per second.
    ///
    /// # Panics
    /// When `mbps` is zero or the rate does not fit: for constants.
    pub const fn mbps(mbps: u64) -> Self {
        match mbps.checked_mul(1_000_000) {
            Some(bps) if bps > 0 => Self(bps),
            _ => panic!("a rate is 1 Mbps or more and fits 64 bits"),
        }
    }

    /// `count` times this rate (saturating); `count` is at least 1.
    pub const fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(if count == 0 { 1 } else { count as u64 }))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, rounded up to a picosecond.
    // spec: SEG-4, WIRE-7
    pub const fn time_for(self, bytes: u64) -> Duration {
        // Packets fit 64 bits, which divide several times faster.
        if let Some(bits) = bytes.checked_mul(8 * PS_PER_S) {
            return Duration::from_ps(bits.div_ceil(self.0));
        }
        let bits = bytes as u128 * 8 * PS_PER_S as u128;
        let ps = bits.div_ceil(self.0 as u128);
        if ps > u64::MAX as u128 { Duration::MAX } else { Duration::from_ps(ps as u64) }
    }

    /// How many whole bytes pass in `time` at this rate (saturating).
    pub const fn bytes_in(self, time: Duration) -> u64 {
        let bytes = self.0 as u128 * time.as_ps() as u128 / (8 * PS_PER_S as u128);
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scale, unit) in [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps")] {
            if self.0.is_multiple_of(scale) {
                return write!(f, "{} {unit}", self.0 / scale);
            }
        }
        write!(f, "{} bps", self.0)
    }
}

/// A part of a whole, exact to a millionth: from 0 to 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Share(u32);

impl Share {
    const WHOLE: u32 = 1_000_000;

    /// `ppm` millionths.
    ///
    /// # Panics
    /// When it is more than the whole: for constants.
    pub const fn from_ppm(ppm: u32) -> Self {
        assert!(ppm <= Self::WHOLE, "a share is at most the whole");
        Self(ppm)
    }

    /// The share that `value` is; `None` when it is not from 0 to 1 or finer than
    /// a millionth.
    pub fn from_f64(value: f64) -> Option<Self> {
        let ppm = (value * f64::from(Self::WHOLE)).round();
        let exact = (ppm / f64::from(Self::WHOLE) - value).abs() < 1e-12;
        ((0.0..=f64::from(Self::WHOLE)).contains(&ppm) && exact).then_some(Self(ppm as u32))
    }

    /// As a floating-point number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// In millionths.
    pub const fn as_ppm(self) -> u32 {
        self.0
    }

    /// This share of `bytes`, rounded down.
    pub const fn of(self, bytes: u64) -> u64 {
        (bytes as u128 * self.0 as u128 / Self::WHOLE as u128) as u64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// Why a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct UnitError {
    text: String,
    wanted: &'static str,
}

const RATES: &[(&str, u64)] = &[
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
];
const SIZES: &[(&str, u64)] = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const TIMES: &[(&str, u64)] =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", PS_PER_S)];

/// Reads a rate such as `400 Gbps`.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    let wanted = "a rate above zero with a unit (bps, kbps, Mbps, Gbps, Tbps), such as 400 Gbps";
    scaled(text, RATES).and_then(Rate::from_bps).ok_or_else(|| error(text, wanted))
}

/// Reads a size such as `64 MiB` or `100 KB` (KB = 1,000, KiB = 1,024 bytes).
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let wanted = "a size with a unit (B, KB, MB, GB, KiB, MiB, GiB), such as 64 MiB";
    scaled(text, SIZES).ok_or_else(|| error(text, wanted))
}

/// Reads a span of protocol time such as `150 us`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wanted = "a time with a unit (ps, ns, us, ms, s), such as 150 us";
    scaled(text, TIMES).map(Duration::from_ps).ok_or_else(|| error(text, wanted))
}

/// A span in its largest whole unit, as scenario files write it: `150 us`.
pub fn show_duration(time: Duration) -> String {
    let ps = time.as_ps();
    let (name, scale) =
        TIMES.iter().rev().find(|(_, scale)| ps.is_multiple_of(*scale)).unwrap_or(&TIMES[0]);
    format!("{} {name}", ps / scale)
}

/// A size in its largest whole unit, 1,000s before 1,024s: `100 KB`, `64 MiB`, `78 B`.
pub fn show_bytes(bytes: u64) -> String {
    let fits = |scale: u64| bytes >= scale && bytes.is_multiple_of(scale);
    let (name, scale) = SIZES.iter().find(|(_, scale)| fits(*scale)).unwrap_or(&("B", 1));
    format!("{} {name}", bytes / scale)
}

fn error(text: &str, wanted: &'static str) -> UnitError {
    UnitError { text: text.to_owned(), wanted }
}

/// `number unit` as a whole multiple of the smallest unit: exact, no floats.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = (text[..split].trim(), &text[split..]);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || !(whole.bytes().chain(part.bytes())).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    if !part.is_empty() {
        let tenths = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
        let fraction = u128::from(part.parse::<u64>().ok()?) * u128::from(scale);
        if !fraction.is_multiple_of(u128::from(tenths)) {
            return None;
        }
        value = value.checked_add(u64::try_from(fraction / u128::from(tenths)).ok()?)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: SEG-4, WIRE-7, WIRE-9
    #[test]
    fn serialization_times_of_the_worked_figures() {
        let link = Rate::gbps(400);
        assert_eq!(link.time_for(4174), Duration::from_ps(83_480));
        assert_eq!(link.time_for(62), Duration::from_ps(1_240));
        assert_eq!(Rate::gbps(3).time_for(1), Duration::from_ps(2_667));
        assert_eq!(link.bytes_in(Duration::from_us(6)), 300_000);
    }

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(parse_rate("400 Gbps"), Ok(Rate::gbps(400)));
        assert_eq!(parse_rate("0.5Gbps").map(Rate::as_bps), Ok(500_000_000));
        assert_eq!(parse_bytes("64 MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("100 KB"), Ok(100_000));
        assert_eq!(parse_duration("1.5 us"), Ok(Duration::from_ns(1_500)));
        assert_eq!(parse_duration("83.48 ns").map(Duration::as_ps), Ok(83_480));
        for bad in ["", "12", "Gbps", "-1 Gbps", "0 Gbps", "1e9 bps", "4 gbps", "99999999999 Gbps"]
        {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        assert!(parse_duration("0.0001 ps").is_err());
    }

    #[test]
    fn times_are_shown_as_they_are_read() {
        for (ps, text) in [(0, "0 s"), (1, "1 ps"), (150_000_000, "150 us"), (1_500, "1500 ps")] {
            assert_eq!(show_duration(Duration::from_ps(ps)), text);
            assert_eq!(parse_duration(text), Ok(Duration::from_ps(ps)));
        }
    }

    #[test]
    fn sizes_are_shown_as_they_are_read() {
        for (bytes, text) in
            [(0, "0 B"), (78, "78 B"), (4_000_000, "4 MB"), (64 << 20, "64 MiB"), (1_500, "1500 B")]
        {
            assert_eq!(show_bytes(bytes), text);
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
    }

    #[test]
    fn rates_print_in_their_largest_whole_unit() {
        assert_eq!(Rate::gbps(400).to_string(), "400 Gbps");
        assert_eq!(Rate::from_bps(1_500_000).unwrap().to_string(), "1500 kbps");
    }

    // spec: PB-8, PB-11
    #[test]
    fn shares_are_exact() {
        let share = Share::from_f64(0.9).unwrap();
        assert_eq!((share.of(256_000), share.of(4_000_000)), (230_400, 3_600_000));
        assert_eq!(
            (share.to_string(), Share::from_ppm(1_000_000).to_string()),
            ("0.9".into(), "1".into())
        );
        for wrong in [-0.1, 1.000_001, 0.123_456_7, f64::NAN] {
            assert_eq!(Share::from_f64(wrong), None, "{wrong}");
        }
    }
}
