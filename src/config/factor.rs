//! Factors that may be larger than 1.

use core::fmt;

use super::kind::Kind;

/// A factor from 0 up, exact to a millionth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Factor(u32);

impl Factor {
    const ONE: u32 = 1_000_000;

    /// `ppm` millionths.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(ppm)
    }

    /// As a floating-point number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE)
    }

    /// Whether it is 0.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This many times `bytes`, rounded down (saturating).
    pub const fn of(self, bytes: u64) -> u64 {
        let product = bytes as u128 * self.0 as u128 / Self::ONE as u128;
        if product > u64::MAX as u128 { u64::MAX } else { product as u64 }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// Any factor from 0 to 1024.
pub(super) struct AnyFactor;

impl AnyFactor {
    const MOST: f64 = 1024.0;
}

impl Kind for AnyFactor {
    type Value = Factor;

    fn name(&self) -> String {
        "number".to_owned()
    }

    fn range(&self) -> String {
        format!("0 to {}, in millionths", Self::MOST)
    }

    fn read(&self, value: &toml::Value) -> Option<Factor> {
        let number = match value {
            toml::Value::Integer(whole) => f64::from(u16::try_from(*whole).ok()?),
            other => other.as_float()?,
        };
        let ppm = (number * f64::from(Factor::ONE)).round();
        let exact = (ppm / f64::from(Factor::ONE) - number).abs() < 1e-9;
        ((0.0..=Self::MOST).contains(&number) && exact).then_some(Factor(ppm as u32))
    }

    fn show(&self, value: &Factor) -> String {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_exact_to_a_millionth() {
        let read = |text: &str| AnyFactor.read(&text.parse().unwrap());
        assert_eq!(read("1"), Some(Factor::from_ppm(1_000_000)));
        assert_eq!(read("0.5").map(|half| half.of(3)), Some(1));
        assert_eq!(read("1024").map(|most| most.of(u64::MAX)), Some(u64::MAX));
        assert_eq!(read("2.25").map(|f| f.to_string()), Some("2.25".to_owned()));
        for refused in ["-1", "1025", "0.0000001", "true", "nan"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }
}
