//! How many of the rules the tests name, and the list of those still to come.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Named, SPEC};

/// The list's file, from the project's folder.
pub const NOT_YET: &str = "tests/tidy/not-yet.txt";

/// A line of the list: `CC-1 what it comes with`, `CC what it comes with` for
/// every rule of a prefix, or `RTO-2 (what is missing) what it comes with` for
/// a rule that tests prove in part.
#[derive(Clone, Copy)]
struct Entry<'a> {
    line: usize,
    id: &'a str,
    reason: &'a str,
}

impl Entry<'_> {
    fn is_partly(&self) -> bool {
        self.reason.starts_with('(')
    }

    fn covers(&self, rule: &str) -> bool {
        self.id == rule || self.id == prefix(rule)
    }

    /// By prefix, then by number.
    fn order(&self) -> (&str, Option<u32>) {
        let number = self.id.split_once('-').and_then(|(_, number)| number.parse().ok());
        (prefix(self.id), number)
    }

    fn problem(&self, text: &str) -> String {
        format!("{NOT_YET}:{}: {} {text}", self.line, self.id)
    }
}

fn prefix(rule: &str) -> &str {
    rule.split('-').next().unwrap_or(rule)
}

/// The list's sections: `#` starts a comment, which ends a section.
fn sections(list: &str) -> Vec<Vec<Entry<'_>>> {
    let mut sections = vec![Vec::new()];
    for (line, text) in (1..).zip(list.lines()).filter(|(_, text)| !text.is_empty()) {
        if text.starts_with('#') {
            sections.push(Vec::new());
        } else if let Some(section) = sections.last_mut() {
            let (id, reason) = text.split_once(' ').unwrap_or((text, ""));
            section.push(Entry { line, id, reason });
        }
    }
    sections
}

/// The rules of the specification, what names them, and the list of those to come.
pub struct Coverage<'a> {
    rules: BTreeSet<&'a str>,
    named: &'a Named,
    sections: Vec<Vec<Entry<'a>>>,
}

impl<'a> Coverage<'a> {
    pub fn new(rules: impl Iterator<Item = &'a str>, named: &'a Named, list: &'a str) -> Self {
        Self { rules: rules.collect(), named, sections: sections(list) }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.sections.iter().flatten()
    }

    fn entries_of(&self, rule: &str) -> Vec<&Entry<'a>> {
        self.entries().filter(|entry| entry.covers(rule)).collect()
    }

    /// Faults of the list, and rules that are neither proven nor in it.
    pub fn problems(&self) -> Vec<String> {
        let of_entries = self.entries().filter_map(|entry| self.entry_problem(entry));
        let of_rules = self.rules.iter().filter_map(|rule| self.rule_problem(rule));
        of_entries.chain(self.order_problems()).chain(of_rules).collect()
    }

    fn entry_problem(&self, entry: &Entry<'_>) -> Option<String> {
        if !self.rules.iter().any(|rule| entry.covers(rule)) {
            return Some(entry.problem(&format!("is not in {SPEC}")));
        }
        entry.reason.is_empty().then(|| entry.problem("does not say what it comes with"))
    }

    fn order_problems(&self) -> impl Iterator<Item = String> {
        let pairs = self.sections.iter().flat_map(|section| section.windows(2));
        let wrong = pairs.filter(|pair| pair[1].order() < pair[0].order());
        wrong.map(|pair| pair[1].problem(&format!("belongs before {}", pair[0].id)))
    }

    fn rule_problem(&self, rule: &str) -> Option<String> {
        let is_named = self.named.tests.contains(rule);
        match (self.entries_of(rule).as_slice(), is_named) {
            ([], false) => Some(format!("{SPEC}: no test names {rule}")),
            ([_, second, ..], _) => Some(second.problem(&format!("lists {rule} again"))),
            ([entry], true) if !entry.is_partly() => {
                Some(entry.problem(&format!("is still listed, but a test names {rule}")))
            }
            ([entry], false) if entry.is_partly() => {
                Some(entry.problem(&format!("is listed in part, but no test names {rule}")))
            }
            _ => None,
        }
    }

    /// A table with a line for each prefix and one for all.
    pub fn report(&self) -> String {
        let mut rows = BTreeMap::<&str, [usize; 5]>::new();
        for rule in &self.rules {
            let listed = self.entries_of(rule);
            let partly = listed.iter().any(|entry| entry.is_partly());
            let facts = [
                true,
                self.named.code.contains_key(*rule),
                self.named.tests.contains(*rule),
                !listed.is_empty() && !partly,
                partly,
            ];
            for row in [prefix(rule), "all"] {
                let sums = rows.entry(row).or_default();
                sums.iter_mut().zip(facts).for_each(|(sum, fact)| *sum += usize::from(fact));
            }
        }
        let head = "rules   stated  in code  in tests  not yet  partly\n".to_owned();
        rows.iter().fold(head, |text, (row, [stated, code, tests, not_yet, partly])| {
            text + &format!("{row:6}{stated:8}{code:9}{tests:10}{not_yet:9}{partly:8}\n")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;

    const RULES: [&str; 6] = ["A-1", "A-2", "A-10", "B-1", "B-2", "C-1"];

    /// A-1 is named in code and in a test, A-2 in a test.
    fn named() -> Named {
        let mut named = Named::default();
        named.add(&Source::new("src/a.rs", "// spec: A-1\n"));
        named.add(&Source::new("tests/a.rs", "// spec: A-1, A-2\n"));
        named
    }

    fn problems(list: &str) -> Vec<String> {
        Coverage::new(RULES.into_iter(), &named(), list).problems()
    }

    #[test]
    fn rules_are_proven_or_listed() {
        let list = "# To come.\nA-2 (half of it) x\nA-10 x\nB y\nC-1 z\n";
        assert_eq!(problems(list), [""; 0]);
        assert_eq!(
            problems("A-10 x\nB-2 y\n"),
            ["docs/spec.md: no test names B-1", "docs/spec.md: no test names C-1"]
        );
    }

    #[test]
    fn what_is_listed_is_not_proven() {
        assert_eq!(
            problems("A x\nB y\nC-1 (half of it) z\n"),
            [
                "tests/tidy/not-yet.txt:1: A is still listed, but a test names A-1",
                "tests/tidy/not-yet.txt:1: A is still listed, but a test names A-2",
                "tests/tidy/not-yet.txt:3: C-1 is listed in part, but no test names C-1",
            ]
        );
    }

    #[test]
    fn the_list_is_sorted_and_names_each_rule_once_with_a_reason() {
        assert_eq!(
            problems("A-10 x\nA-2 (half) x\nB y\nB-3 y\nC\n\n# More.\n\nB-2 y\n"),
            [
                "tests/tidy/not-yet.txt:4: B-3 is not in docs/spec.md",
                "tests/tidy/not-yet.txt:5: C does not say what it comes with",
                "tests/tidy/not-yet.txt:2: A-2 belongs before A-10",
                "tests/tidy/not-yet.txt:9: B-2 lists B-2 again",
            ]
        );
    }

    #[test]
    fn the_report_counts_by_prefix() {
        let named = named();
        let list = "A-2 (half of it) x\nA-10 x\nB y\nC-1 z\n";
        let report = Coverage::new(RULES.into_iter(), &named, list).report();
        assert_eq!(
            report.lines().collect::<Vec<_>>(),
            [
                "rules   stated  in code  in tests  not yet  partly",
                "A            3        1         2        1       1",
                "B            2        0         0        2       0",
                "C            1        0         0        1       0",
                "all          6        1         2        4       1",
            ]
        );
    }
}
