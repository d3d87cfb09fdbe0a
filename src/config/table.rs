//! How an attribute is described, set and refused.

use crate::time::Duration;
use crate::units::{self, Rate};

/// What kind of value an attribute takes, its range, and how it is read and
/// written in the struct `T` that holds it.
pub enum Kind<T> {
    /// A whole number.
    Integer {
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        max: u64,
        /// Reads it.
        get: fn(&T) -> u64,
        /// Writes it; the value is in range.
        set: fn(&mut T, u64),
    },
    /// `true` or `false`.
    Flag {
        /// Reads it.
        get: fn(&T) -> bool,
        /// Writes it.
        set: fn(&mut T, bool),
    },
    /// A span of protocol time, written as `150 us`.
    Time {
        /// Shortest span allowed.
        min: Duration,
        /// Longest span allowed.
        max: Duration,
        /// Reads it.
        get: fn(&T) -> Duration,
        /// Writes it; the value is in range.
        set: fn(&mut T, Duration),
    },
    /// A rate, written as `400 Gbps`.
    Rate {
        /// Reads it.
        get: fn(&T) -> Rate,
        /// Writes it.
        set: fn(&mut T, Rate),
    },
    /// A number of bytes, written as a whole number or as `100 KB`.
    Size {
        /// Smallest value allowed, in bytes.
        min: u64,
        /// Largest value allowed, in bytes.
        max: u64,
        /// Reads it.
        get: fn(&T) -> u64,
        /// Writes it; the value is in range.
        set: fn(&mut T, u64),
    },
    /// One of several names.
    Choice {
        /// The names.
        names: &'static [&'static str],
        /// Reads the index of the current name.
        get: fn(&T) -> usize,
        /// Writes the choice by its index.
        set: fn(&mut T, usize),
    },
}

/// One attribute of `T`.
pub struct Attribute<T: 'static> {
    /// Its name in scenario files, as the field's public names have it.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind<T>,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

/// Why an attribute could not be set: names the attribute, the value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// No attribute has this name.
    #[error("`{name}` is not an attribute of a {owner}{}; the known ones are: {known}", .near.as_ref().map_or(String::new(), |n| format!(" (did you mean `{n}`?)")))]
    Unknown {
        /// The name given.
        name: String,
        /// `NIC` or `switch`.
        owner: &'static str,
        /// The closest known name, when one is close.
        near: Option<&'static str>,
        /// All known names.
        known: String,
    },
    /// The value is of the wrong kind or out of range.
    #[error("`{name} = {value}`: {allowed}")]
    Refused {
        /// The attribute.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

impl<T> Kind<T> {
    /// What values are allowed, in words.
    pub fn allowed(&self) -> String {
        match self {
            Self::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Self::Flag { .. } => "true or false".to_owned(),
            Self::Time { min, max, .. } => {
                let (min, max) = (units::show_duration(*min), units::show_duration(*max));
                format!("a time with its unit from \"{min}\" to \"{max}\"")
            }
            Self::Rate { .. } => "a rate above zero with its unit, such as \"400 Gbps\"".to_owned(),
            Self::Size { min, max, .. } => {
                format!("a size from {min} to {max} bytes, such as \"100 KB\"")
            }
            Self::Choice { names, .. } => format!("one of {}", names.join(", ")),
        }
    }

    /// The current value in `holder`, as a scenario file would write it.
    pub fn show(&self, holder: &T) -> String {
        match self {
            Self::Integer { get, .. } | Self::Size { get, .. } => get(holder).to_string(),
            Self::Flag { get, .. } => get(holder).to_string(),
            Self::Time { get, .. } => units::show_duration(get(holder)),
            Self::Rate { get, .. } => get(holder).to_string(),
            Self::Choice { names, get, .. } => names[get(holder)].to_owned(),
        }
    }

    fn set(&self, holder: &mut T, value: &toml::Value) -> Option<()> {
        match self {
            Self::Integer { min, max, set, .. } => {
                let number = u64::try_from(value.as_integer()?).ok()?;
                set(holder, Some(number).filter(|n| (*min..=*max).contains(n))?);
            }
            Self::Flag { set, .. } => set(holder, value.as_bool()?),
            Self::Time { min, max, set, .. } => {
                let time = units::parse_duration(value.as_str()?).ok()?;
                set(holder, Some(time).filter(|t| (*min..=*max).contains(t))?);
            }
            Self::Rate { set, .. } => set(holder, units::parse_rate(value.as_str()?).ok()?),
            Self::Size { min, max, set, .. } => {
                let bytes = match value {
                    toml::Value::Integer(bytes) => u64::try_from(*bytes).ok()?,
                    other => units::parse_bytes(other.as_str()?).ok()?,
                };
                set(holder, Some(bytes).filter(|b| (*min..=*max).contains(b))?);
            }
            Self::Choice { names, set, .. } => {
                let wanted = value.as_str()?;
                set(holder, names.iter().position(|name| *name == wanted)?);
            }
        }
        Some(())
    }
}

/// Sets the attribute `name` of `holder`, described in `table`.
pub fn set_attribute<T>(
    table: &'static [Attribute<T>],
    owner: &'static str,
    holder: &mut T,
    name: &str,
    value: &toml::Value,
) -> Result<(), AttributeError> {
    let Some(attribute) = table.iter().find(|a| a.name == name) else {
        return Err(unknown(table, owner, name));
    };
    attribute.kind.set(holder, value).ok_or_else(|| AttributeError::Refused {
        name: attribute.name,
        value: value.to_string(),
        allowed: attribute.kind.allowed(),
    })
}

fn unknown<T>(table: &'static [Attribute<T>], owner: &'static str, name: &str) -> AttributeError {
    let near = table.iter().map(|a| a.name).find(|known| known.eq_ignore_ascii_case(name));
    let known = table.iter().map(|a| a.name).collect::<Vec<_>>().join(", ");
    AttributeError::Unknown { name: name.to_owned(), owner, near, known }
}
