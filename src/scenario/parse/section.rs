//! One section of a scenario file: its keys, read and refused by name.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::findings::Findings;
use crate::time::Duration;
use crate::units;

/// One table of the file. Every value that is not as wanted becomes a finding
/// and reads as absent, so that reading goes on.
#[derive(Clone)]
pub(in crate::scenario) struct Section<'a> {
    /// As the file spells its header: `[[link]]`.
    pub title: String,
    at: Range<usize>,
    table: &'a DeTable<'a>,
    findings: &'a Findings<'a>,
}

impl<'a> Section<'a> {
    /// The section `table` at these bytes of the file.
    pub fn new(
        title: &str,
        at: Range<usize>,
        table: &'a DeTable<'a>,
        findings: &'a Findings<'a>,
    ) -> Self {
        Self { title: title.to_owned(), at, table, findings }
    }

    /// The same, where the file may hold anything but a table too.
    pub fn from_value(
        title: &str,
        value: &'a Spanned<DeValue<'a>>,
        findings: &'a Findings<'a>,
    ) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            let what = format!("{title} is {}: write it as a section", kind_of(value.get_ref()));
            findings.add(value.span(), what);
            return None;
        };
        Some(Self::new(title, value.span(), table, findings))
    }

    /// Refuses every key that is not in `known`.
    pub fn allow_keys(&self, known: &[&str]) {
        for key in self.table.keys().filter(|key| !known.contains(&&**key.get_ref())) {
            let what = format!(
                "unknown key `{}`; correct or remove it: the keys here are {}",
                key.get_ref(),
                known.join(", ")
            );
            self.findings.add(key.span(), self.titled(&what));
        }
    }

    /// The section's header with what is wrong with it.
    fn titled(&self, what: &str) -> String {
        if self.title.is_empty() { what.to_owned() } else { format!("{} {what}", self.title) }
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The key's value.
    pub fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// All keys with their values.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Spanned<DeValue<'a>>)> + use<'a> {
        self.table.iter().map(|(key, value)| (&**key.get_ref(), value))
    }

    /// The key's value as the file spells it.
    pub fn source(&self, key: &str) -> &'a str {
        self.value(key).map_or("", |value| self.findings.source(value.span()))
    }

    /// The section as a whole is wrong.
    pub fn refuse(&self, what: &str) {
        self.findings.add(self.at.clone(), self.titled(what));
    }

    /// The value of `key` is wrong.
    pub fn refuse_key(&self, key: &str, what: &str) {
        let Some(value) = self.value(key) else { return self.refuse(what) };
        let quoted = self.findings.quoted(value.span());
        self.findings.add(value.span(), self.titled(&format!("{key} = {quoted}: {what}")));
    }

    /// Something at `key` is wrong that says all by itself.
    pub fn refuse_entry(&self, key: &str, what: &str) {
        let at = self.value(key).map_or(self.at.clone(), Spanned::span);
        self.findings.add(at, self.titled(what));
    }

    /// The value of `key` as `read` understands it; `wanted` says what it takes.
    pub fn optional<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let found = read(self.value(key)?.get_ref());
        if found.is_none() {
            self.refuse_key(key, &format!("must be {wanted}"));
        }
        found
    }

    /// The same for a key that must be there.
    pub fn required<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.refuse(&format!("`{key}` is missing: it must be {wanted}"));
        }
        self.optional(key, wanted, read)
    }

    /// A whole number from `min` to `max`.
    pub fn whole(&self, key: &str, min: u64, max: u64) -> Option<u64> {
        self.optional(key, &format!("a whole number from {min} to {max}"), |value| {
            whole(value).filter(|number| (min..=max).contains(number))
        })
    }

    /// A span of protocol time.
    pub fn time(&self, key: &str) -> Option<Duration> {
        let wanted = "a time with a unit (ps, ns, us, ms, s), such as \"150 us\"";
        self.optional(key, wanted, |value| units::parse_duration(value.as_str()?).ok())
    }

    /// The table at `key`: the section `[title.key]`.
    pub fn inner(&self, key: &str) -> Option<Self> {
        let title = match self.title.trim_matches(['[', ']']) {
            "" => format!("[{key}]"),
            outer => format!("[{outer}.{key}]"),
        };
        Self::from_value(&title, self.value(key)?, self.findings)
    }

    /// The table at `key` as a part of this section, when there is a table.
    pub fn part(&self, key: &str) -> Option<Self> {
        let value = self.value(key)?;
        let table = value.get_ref().as_table()?;
        Some(Self::new(&self.title, value.span(), table, self.findings))
    }

    /// The tables at `key`: the sections `[[key]]`.
    pub fn each(&self, key: &str) -> Vec<Self> {
        let title = format!("[[{key}]]");
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            let kind = kind_of(value.get_ref());
            self.refuse_entry(key, &format!("`{key}` is {kind}: write a section {title} for each"));
            return Vec::new();
        };
        array.iter().filter_map(|v| Self::from_value(&title, v, self.findings)).collect()
    }
}

/// A whole number of any spelling.
pub(in crate::scenario) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A number of bytes: `64 MiB`, or a whole number.
pub(in crate::scenario) fn size(value: &DeValue<'_>) -> Option<u64> {
    match value.as_str() {
        Some(text) => units::parse_bytes(text).ok(),
        None => whole(value),
    }
}

fn kind_of(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}
