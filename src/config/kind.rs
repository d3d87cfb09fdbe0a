//! The kinds of values that attributes take: how each is written in a scenario
//! file, and what is allowed.

use core::net::Ipv4Addr;

use crate::time::Duration;
use crate::units::{self, Rate, Share};

/// A kind of values and their spelling in TOML.
pub trait Kind: Sync {
    /// The values.
    type Value;
    /// What one is called, with "a" before it: `whole number`.
    fn name(&self) -> String;
    /// Which values are allowed: `1 to 16`.
    fn range(&self) -> String;
    /// Reads a value; `None` for any that is not allowed.
    fn read(&self, value: &toml::Value) -> Option<Self::Value>;
    /// Writes a value as it is read; text goes without its quotes.
    fn show(&self, value: &Self::Value) -> String;
}

/// A whole number.
pub struct Whole<N> {
    /// The smallest one allowed.
    pub min: N,
    /// The largest one allowed.
    pub max: N,
}

impl<N: Copy + Sync + Into<u64> + TryFrom<u64>> Kind for Whole<N> {
    type Value = N;

    fn name(&self) -> String {
        "whole number".to_owned()
    }

    fn range(&self) -> String {
        format!("{} to {}", self.min.into(), self.max.into())
    }

    fn read(&self, value: &toml::Value) -> Option<N> {
        let number = u64::try_from(value.as_integer()?).ok()?;
        let allowed = self.min.into()..=self.max.into();
        N::try_from(number).ok().filter(|_| allowed.contains(&number))
    }

    fn show(&self, value: &N) -> String {
        (*value).into().to_string()
    }
}

/// `true` or `false`.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn name(&self) -> String {
        "boolean".to_owned()
    }

    fn range(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, value: &toml::Value) -> Option<bool> {
        value.as_bool()
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// 0 or 1, as an entry of a list.
pub struct Bit;

impl Kind for Bit {
    type Value = bool;

    fn name(&self) -> String {
        "whole number".to_owned()
    }

    fn range(&self) -> String {
        "0 or 1".to_owned()
    }

    fn read(&self, value: &toml::Value) -> Option<bool> {
        match value.as_integer()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn show(&self, value: &bool) -> String {
        u8::from(*value).to_string()
    }
}

/// A span of protocol time, such as `"150 us"`.
pub struct Time {
    /// The shortest one allowed.
    pub min: Duration,
    /// The longest one allowed.
    pub max: Duration,
}

impl Kind for Time {
    type Value = Duration;

    fn name(&self) -> String {
        "time".to_owned()
    }

    fn range(&self) -> String {
        format!("\"{}\" to \"{}\"", self.show(&self.min), self.show(&self.max))
    }

    fn read(&self, value: &toml::Value) -> Option<Duration> {
        let time = units::parse_duration(value.as_str()?).ok()?;
        (self.min..=self.max).contains(&time).then_some(time)
    }

    fn show(&self, value: &Duration) -> String {
        units::show_duration(*value)
    }
}

/// A rate, such as `"400 Gbps"`.
pub struct AnyRate;

impl Kind for AnyRate {
    type Value = Rate;

    fn name(&self) -> String {
        "rate".to_owned()
    }

    fn range(&self) -> String {
        "above 0, such as \"400 Gbps\"".to_owned()
    }

    fn read(&self, value: &toml::Value) -> Option<Rate> {
        units::parse_rate(value.as_str()?).ok()
    }

    fn show(&self, value: &Rate) -> String {
        value.to_string()
    }
}

/// A number of bytes: a whole number, or with a unit, such as `"100 KB"`.
pub struct Size {
    /// The smallest one allowed, in bytes.
    pub min: u64,
    /// The largest one allowed, in bytes.
    pub max: u64,
}

impl Kind for Size {
    type Value = u64;

    fn name(&self) -> String {
        "size".to_owned()
    }

    fn range(&self) -> String {
        format!("\"{}\" to \"{}\"", self.show(&self.min), self.show(&self.max))
    }

    fn read(&self, value: &toml::Value) -> Option<u64> {
        let bytes = match value {
            toml::Value::Integer(bytes) => u64::try_from(*bytes).ok()?,
            other => units::parse_bytes(other.as_str()?).ok()?,
        };
        (self.min..=self.max).contains(&bytes).then_some(bytes)
    }

    fn show(&self, value: &u64) -> String {
        units::show_bytes(*value)
    }
}

/// A part of a whole.
pub struct AnyShare;

impl Kind for AnyShare {
    type Value = Share;

    fn name(&self) -> String {
        "share".to_owned()
    }

    fn range(&self) -> String {
        "0 to 1, in millionths".to_owned()
    }

    fn read(&self, value: &toml::Value) -> Option<Share> {
        match value {
            toml::Value::Integer(0) => Some(Share::from_ppm(0)),
            toml::Value::Integer(1) => Some(Share::from_ppm(1_000_000)),
            other => Share::from_f64(other.as_float()?),
        }
    }

    fn show(&self, value: &Share) -> String {
        value.to_string()
    }
}

/// One of several values that have names.
pub struct Choice<E: 'static>(
    /// Each name with what it stands for; every value has one.
    pub &'static [(&'static str, E)],
);

impl<E: Copy + PartialEq + Sync> Kind for Choice<E> {
    type Value = E;

    fn name(&self) -> String {
        "name".to_owned()
    }

    fn range(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().expect("there are values");
        format!("{} or {last}", others.join(", "))
    }

    fn read(&self, value: &toml::Value) -> Option<E> {
        let wanted = value.as_str()?;
        self.0.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    fn show(&self, value: &E) -> String {
        let found = self.0.iter().find(|(_, known)| known == value);
        found.map_or(String::new(), |(name, _)| (*name).to_owned())
    }
}

/// A value, or a word for none.
pub struct Or<K> {
    /// The word.
    pub word: &'static str,
    /// The values.
    pub kind: K,
}

impl<K: Kind> Kind for Or<K> {
    type Value = Option<K::Value>;

    fn name(&self) -> String {
        self.kind.name()
    }

    fn range(&self) -> String {
        format!("{}, or \"{}\"", self.kind.range(), self.word)
    }

    fn read(&self, value: &toml::Value) -> Option<Self::Value> {
        if value.as_str() == Some(self.word) {
            return Some(None);
        }
        self.kind.read(value).map(Some)
    }

    fn show(&self, value: &Self::Value) -> String {
        value.as_ref().map_or(self.word.to_owned(), |value| self.kind.show(value))
    }
}

/// A list of values of one kind.
pub struct List<K> {
    /// What each entry is.
    pub of: K,
    /// How many entries there are at least.
    pub min: usize,
    /// How many entries there are at most.
    pub max: usize,
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn name(&self) -> String {
        list_of(&self.of)
    }

    fn range(&self) -> String {
        format!("{} to {} entries, {}", self.min, self.max, self.of.range())
    }

    fn read(&self, value: &toml::Value) -> Option<Self::Value> {
        read_all(&self.of, value).filter(|all| (self.min..=self.max).contains(&all.len()))
    }

    fn show(&self, value: &Self::Value) -> String {
        show_all(&self.of, value)
    }
}

/// A list of exactly `N` values of one kind.
pub struct Array<K, const N: usize>(
    /// What each entry is.
    pub K,
);

impl<K: Kind, const N: usize> Kind for Array<K, N> {
    type Value = [K::Value; N];

    fn name(&self) -> String {
        list_of(&self.0)
    }

    fn range(&self) -> String {
        format!("{N} entries, {}", self.0.range())
    }

    fn read(&self, value: &toml::Value) -> Option<Self::Value> {
        read_all(&self.0, value)?.try_into().ok()
    }

    fn show(&self, value: &Self::Value) -> String {
        show_all(&self.0, value)
    }
}

/// Whether something is so for each class of the NIC: 0 or 1 for data, then for
/// control. Further classes may be named and never are.
pub struct ClassFlags;

impl ClassFlags {
    const MOST: usize = 8;
    const EACH: Whole<u32> = Whole { min: 0, max: 1 };
}

impl Kind for ClassFlags {
    type Value = [bool; 2];

    fn name(&self) -> String {
        list_of(&Self::EACH)
    }

    fn range(&self) -> String {
        format!("1 to {} entries, 0 or 1; 0 after the second", Self::MOST)
    }

    fn read(&self, value: &toml::Value) -> Option<[bool; 2]> {
        let all = read_all(&Self::EACH, value)?;
        let named = (1..=Self::MOST).contains(&all.len()) && all.iter().skip(2).all(|n| *n == 0);
        let flag = |class: usize| all.get(class) == Some(&1);
        named.then(|| [flag(0), flag(1)])
    }

    fn show(&self, value: &[bool; 2]) -> String {
        show_all(&Self::EACH, &value.map(u32::from))
    }
}

/// An IPv4 address as an entry of a list, so it keeps its quotes.
pub struct Address;

impl Kind for Address {
    type Value = Ipv4Addr;

    fn name(&self) -> String {
        "host address".to_owned()
    }

    fn range(&self) -> String {
        "such as \"10.0.0.2\"".to_owned()
    }

    fn read(&self, value: &toml::Value) -> Option<Ipv4Addr> {
        value.as_str()?.parse().ok()
    }

    fn show(&self, value: &Ipv4Addr) -> String {
        format!("\"{value}\"")
    }
}

fn list_of(entry: &impl Kind) -> String {
    format!("list, each entry a {}", entry.name())
}

fn read_all<K: Kind>(entry: &K, value: &toml::Value) -> Option<Vec<K::Value>> {
    value.as_array()?.iter().map(|value| entry.read(value)).collect()
}

fn show_all<K: Kind>(entry: &K, values: &[K::Value]) -> String {
    let shown: Vec<_> = values.iter().map(|value| entry.show(value)).collect();
    format!("[{}]", shown.join(", "))
}
