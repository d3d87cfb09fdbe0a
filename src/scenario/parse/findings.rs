//! What is wrong with a scenario file, and where.

use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use std::collections::BTreeSet;

/// The longest piece of a file that a message repeats, in characters.
const MAX_QUOTED: usize = 60;
/// How many names a message lists at most.
const MAX_LISTED: usize = 20;

/// One thing that is wrong with a scenario file. Prints as
/// `two-hosts.toml:12: [[write]] to = "c": no NIC of that name; the NICs are a, b`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ScenarioError {
    /// The file, as it was named by the caller.
    pub file: String,
    /// The line, from 1; `None` for what is wrong with the file as a whole.
    pub line: Option<usize>,
    /// What is wrong and what to do about it.
    pub what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl core::error::Error for ScenarioError {}

/// Collects everything that is wrong with one file.
pub(in crate::scenario) struct Findings<'a> {
    file: &'a str,
    text: &'a str,
    found: RefCell<Vec<ScenarioError>>,
}

impl<'a> Findings<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, found: RefCell::default() }
    }

    /// Something is wrong at these bytes of the file.
    pub fn add(&self, at: Range<usize>, what: String) {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.push(Some(line), what);
    }

    /// Something is wrong with the file as a whole.
    pub fn add_general(&self, what: String) {
        self.push(None, what);
    }

    fn push(&self, line: Option<usize>, what: String) {
        self.found.borrow_mut().push(ScenarioError { file: self.file.to_owned(), line, what });
    }

    /// These bytes of the file.
    pub fn source(&self, at: Range<usize>) -> &'a str {
        self.text.get(at).unwrap_or_default()
    }

    /// These bytes of the file in one short line.
    pub fn quoted(&self, at: Range<usize>) -> String {
        let words = self.source(at).split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(MAX_QUOTED) {
            Some((end, _)) => format!("{}...", &words[..end]),
            None => words,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Everything that was found, in the order of the file. What many nodes or
    /// links have from one section is said once.
    pub fn into_sorted(self) -> Vec<ScenarioError> {
        let mut found = self.found.into_inner();
        let mut said = BTreeSet::new();
        found.retain(|error| said.insert(error.clone()));
        found.sort_by_key(|error| error.line);
        found
    }
}

/// `a, b, c`, cut short when there are many.
pub(in crate::scenario) fn list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let all = names.len();
    let listed = names.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    match all {
        0 => "none".to_owned(),
        1..=MAX_LISTED => listed,
        _ => format!("{listed}, ... ({all} in all)"),
    }
}
