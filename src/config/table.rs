//! How an attribute is described, set and refused.

use super::kind::Kind;

/// All attributes of `T`.
pub struct Table<T: 'static> {
    /// What has them: `NIC` or `switch`.
    pub owner: &'static str,
    /// The attributes in groups.
    pub groups: &'static [Group<T>],
}

/// Attributes that are about one thing.
pub struct Group<T: 'static> {
    /// The thing.
    pub name: &'static str,
    /// The attributes.
    pub attributes: &'static [Attribute<T>],
}

/// One attribute of `T`.
pub struct Attribute<T: 'static> {
    /// Its name in scenario files, as the field's public names have it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    pub(super) place: &'static dyn Place<T>,
}

/// Where in `T` a value of a certain kind is.
pub(super) struct Field<T, K: Kind> {
    pub kind: K,
    pub get: fn(&T) -> K::Value,
    /// The value is one that the kind allows.
    pub set: fn(&mut T, K::Value),
}

/// A [`Field`] of any kind.
pub(super) trait Place<T>: Sync {
    fn kind_name(&self) -> String;
    fn range(&self) -> String;
    fn show(&self, holder: &T) -> String;
    fn set(&self, holder: &mut T, value: &toml::Value) -> Option<()>;
}

impl<T, K: Kind> Place<T> for Field<T, K> {
    fn kind_name(&self) -> String {
        self.kind.name()
    }

    fn range(&self) -> String {
        self.kind.range()
    }

    fn show(&self, holder: &T) -> String {
        self.kind.show(&(self.get)(holder))
    }

    fn set(&self, holder: &mut T, value: &toml::Value) -> Option<()> {
        (self.set)(holder, self.kind.read(value)?);
        Some(())
    }
}

/// An [`Attribute`] called `$name`, of the kind `$kind`, in a field of `$holder`.
macro_rules! attribute {
    ($holder:ty, $name:literal, $kind:expr, $($field:ident).+, $doc:literal) => {
        Attribute {
            name: $name,
            doc: $doc,
            place: &Field {
                kind: $kind,
                get: |holder: &$holder| holder.$($field).+.clone(),
                set: |holder: &mut $holder, value| holder.$($field).+ = value,
            },
        }
    };
}
pub(super) use attribute;

/// Why an attribute could not be set: names the attribute, the value, what is
/// allowed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// No attribute has this name.
    #[error("`{name}` is not an attribute of a {owner};{} `mrc attributes {}` lists them", did_you_mean(.near), .owner.to_lowercase())]
    Unknown {
        /// The name given.
        name: String,
        /// `NIC` or `switch`.
        owner: &'static str,
        /// The closest known names, when any is close.
        near: Vec<&'static str>,
    },
    /// The value is of the wrong kind or out of range.
    #[error("`{name} = {value}`: must be {allowed}; correct it, or remove it to keep {kept}")]
    Refused {
        /// The attribute.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: String,
        /// The value that stays.
        kept: String,
    },
}

fn did_you_mean(near: &[&str]) -> String {
    let quoted: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    match quoted[..] {
        [] => String::new(),
        _ => format!(" did you mean {}?", quoted.join(" or ")),
    }
}

impl<T> Attribute<T> {
    /// What kind of value it takes, such as `whole number`.
    pub fn kind(&self) -> String {
        self.place.kind_name()
    }

    /// Which values are allowed, such as `1 to 16`.
    pub fn range(&self) -> String {
        self.place.range()
    }

    /// The current value in `holder`, as a scenario file would write it but for
    /// the quotes around text.
    pub fn show(&self, holder: &T) -> String {
        self.place.show(holder)
    }

    /// Sets the value in `holder` to what `text` says: TOML, or text without
    /// its quotes.
    ///
    /// # Errors
    /// When the value is not allowed; `holder` keeps the one that it has.
    // spec: PB-8
    fn set(&self, holder: &mut T, text: &str) -> Result<(), AttributeError> {
        // What is no TOML by itself goes on as text: `150 us`, and whatever
        // TOML has no room for.
        let value = text.parse().unwrap_or_else(|_| toml::Value::String(text.to_owned()));
        self.place.set(holder, &value).ok_or_else(|| AttributeError::Refused {
            name: self.name,
            value: text.split_whitespace().collect::<Vec<_>>().join(" "),
            allowed: format!("a {} ({})", self.kind(), self.range()),
            kept: self.show(holder),
        })
    }
}

impl<T> Table<T> {
    /// Every attribute, in the order of the groups.
    pub fn attributes(&self) -> impl Iterator<Item = &'static Attribute<T>> + use<T> {
        self.groups.iter().flat_map(|group| group.attributes)
    }

    /// The attribute of this name.
    pub fn find(&self, name: &str) -> Option<&'static Attribute<T>> {
        self.attributes().find(|attribute| attribute.name == name)
    }

    /// Sets the attribute `name` of `holder` to what `text` says: TOML, or text
    /// without its quotes.
    ///
    /// # Errors
    /// When there is no such attribute, or the value is not allowed; nothing
    /// changes then.
    pub fn set(&self, holder: &mut T, name: &str, text: &str) -> Result<(), AttributeError> {
        match self.find(name) {
            Some(attribute) => attribute.set(holder, text),
            None => Err(AttributeError::Unknown {
                name: name.to_owned(),
                owner: self.owner,
                near: self.nearest(name),
            }),
        }
    }

    /// The attributes whose names are closest to `name`, as far as they are
    /// close: a third of the letters may be wrong, and what is before the dot
    /// may lack.
    fn nearest(&self, name: &str) -> Vec<&'static str> {
        let all: Vec<_> = self.attributes().map(|a| (distance(name, a.name), a.name)).collect();
        let least = all.iter().map(|(distance, _)| *distance).min().unwrap_or(usize::MAX);
        let close = |distance| distance == least && distance <= name.chars().count() / 3;
        all.iter().filter(|(distance, _)| close(*distance)).map(|(_, name)| *name).collect()
    }
}

fn distance(given: &str, known: &str) -> usize {
    let (given, known) = (given.to_lowercase(), known.to_lowercase());
    let last = known.rsplit('.').next().unwrap_or(&known);
    let between = |name| strsim::damerau_levenshtein(&given, name);
    between(&known).min(between(last))
}
