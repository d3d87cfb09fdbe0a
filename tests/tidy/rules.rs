//! The protocol's rules: where docs/spec.md states them, and where comments name them.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// The rules' document, from the project's folder.
pub const SPEC: &str = "docs/spec.md";

/// The rules that `text` states, each with its lines: list items `- **SEG-3** ...`.
pub fn stated(text: &str) -> BTreeMap<String, Vec<usize>> {
    let mut rules = BTreeMap::<String, Vec<usize>>::new();
    for (number, line) in (1..).zip(text.lines()) {
        let id = line.strip_prefix("- **").and_then(|rest| rest.split_once("** "));
        if let Some((id, _)) = id.filter(|(id, _)| is_id(id)) {
            rules.entry(id.to_owned()).or_default().push(number);
        }
    }
    rules
}

/// Rules stated twice, gaps in the numbers of a prefix, mentions of rules that do not exist.
pub fn document_problems(text: &str) -> Vec<String> {
    let rules = stated(text);
    let mut found = Vec::new();
    for (id, lines) in &rules {
        let (prefix, number) = id.split_once('-').expect("an ID has a dash");
        if lines.len() > 1 {
            found.push(format!("{SPEC}:{}: rule {id} is stated before", lines[1]));
        }
        let before = number.parse::<u32>().map_or(0, |number| number - 1);
        if before > 0 && !rules.contains_key(&format!("{prefix}-{before}")) {
            found.push(format!("{SPEC}:{}: no rule {prefix}-{before} before {id}", lines[0]));
        }
    }
    let prefixes: BTreeSet<_> = rules.keys().filter_map(|id| id.split('-').next()).collect();
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.split(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        let dangling = words
            .filter(|word| is_id(word) && prefixes.contains(word.split('-').next().unwrap_or("")));
        let dangling = dangling.filter(|id| !rules.contains_key(*id));
        found.extend(dangling.map(|id| format!("{SPEC}:{number}: there is no rule {id}")));
    }
    found
}

fn is_id(text: &str) -> bool {
    let Some((prefix, number)) = text.split_once('-') else { return false };
    let digits = !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit());
    !prefix.is_empty()
        && prefix.bytes().all(|b| b.is_ascii_uppercase())
        && (1..=4).contains(&number.len())
        && digits
}

/// The rules that a comment names: `None` when it names none, `Some(Err)` when
/// it tries to and its form is wrong.
fn named_by(comment: &str) -> Option<Result<Vec<&str>, ()>> {
    if let Some(list) = comment.strip_prefix("// spec: ") {
        let ids: Vec<_> = list.split(", ").collect();
        return Some(if ids.iter().all(|id| is_id(id)) { Ok(ids) } else { Err(()) });
    }
    let lower = comment.to_ascii_lowercase();
    let mut words = lower.trim_start_matches(['/', '*', '!', ' ']).split([' ', ',']);
    let no_colon = words.next() == Some("spec")
        && words.next().is_some_and(|word| is_id(&word.to_ascii_uppercase()));
    (lower.contains("spec:") || no_colon).then_some(Err(()))
}

/// Malformed spec comments, and names of rules that do not exist.
pub fn comment_problems(file: &Source, rules: &BTreeMap<String, Vec<usize>>) -> Vec<String> {
    let mut found = Vec::new();
    for comment in &file.comments {
        match named_by(&comment.text) {
            None => {}
            Some(Err(())) => found.push(file.problem(
                comment.line,
                &format!("`{}` is not of the form `// spec: SEG-3, ACK-1`", comment.text),
            )),
            Some(Ok(ids)) => {
                let unknown = ids.into_iter().filter(|id| !rules.contains_key(*id));
                let text = |id| format!("rule {id} is not in {SPEC}");
                found.extend(unknown.map(|id| file.problem(comment.line, &text(id))));
            }
        }
    }
    found
}

/// Which rules code and tests name.
#[derive(Debug, Default)]
pub struct Named {
    /// Rule to the first place in code that names it.
    pub code: BTreeMap<String, String>,
    pub tests: BTreeSet<String>,
}

impl Named {
    pub fn add(&mut self, file: &Source) {
        for comment in &file.comments {
            let Some(Ok(ids)) = named_by(&comment.text) else { continue };
            for id in ids.into_iter().map(str::to_owned) {
                if file.is_test(comment.line) {
                    self.tests.insert(id);
                } else {
                    let problem = format!("rule {id} is named here and in no test");
                    self.code.entry(id).or_insert_with(|| file.problem(comment.line, &problem));
                }
            }
        }
    }

    /// A problem for each rule that code names and no test does.
    pub fn unproven(&self) -> Vec<String> {
        let unproven = self.code.iter().filter(|(id, _)| !self.tests.contains(*id));
        unproven.map(|(_, problem)| problem.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_from_list_items() {
        let rules =
            stated("- **A-1** x\n  - **A-9** nested\n- A-8 plain\n- **A-2** y\n**A-7** z\n");
        assert_eq!(rules.keys().collect::<Vec<_>>(), ["A-1", "A-2"]);
        assert_eq!(rules["A-2"], [4]);
    }

    #[test]
    fn faults_of_the_document_are_found() {
        let found = document_problems("- **A-1** as A-2\n- **A-1** x\n- **A-4** CRC-32\n");
        assert_eq!(
            found,
            [
                "docs/spec.md:2: rule A-1 is stated before",
                "docs/spec.md:3: no rule A-3 before A-4",
                "docs/spec.md:1: there is no rule A-2",
            ]
        );
        assert_eq!(document_problems("- **A-1** as A-2\n- **A-2** UTF-8\n"), [""; 0]);
    }

    #[test]
    fn one_form_of_spec_comment_is_right() {
        assert_eq!(named_by("// spec: A-1"), Some(Ok(vec!["A-1"])));
        assert_eq!(named_by("// spec: A-1, SACK-10"), Some(Ok(vec!["A-1", "SACK-10"])));
        for fine in ["// the spec says", "// spec file", "/// special: x", "// aspect"] {
            assert_eq!(named_by(fine), None, "{fine}");
        }
        for wrong in [
            "// spec: ACK-1..3",
            "// spec: ACK-1 ACK-2",
            "// spec: ACK-1,ACK-2",
            "// spec: ACK-1.",
            "// spec: ACK-01",
            "// spec: ack-1",
            "// spec:",
            "// spec: ACK-1,",
            "// spec:ACK-1",
            "// Spec: ACK-1",
            "// spec ACK-1",
            "//spec: ACK-1",
            "/// spec: ACK-1",
            "//! spec: ACK-1",
            "/* spec: ACK-1 */",
            "// keeps the window, spec: ACK-1",
        ] {
            assert_eq!(named_by(wrong), Some(Err(())), "{wrong}");
        }
    }

    #[test]
    fn unknown_rules_and_wrong_forms_are_named_with_their_line() {
        let rules = stated("- **A-1** x\n");
        let text = "// spec: A-1\n// spec: A-1, A-2\nfn f() {} // spec: A-1..2\n\"// spec: B-1\"";
        assert_eq!(
            comment_problems(&Source::new("src/a.rs", text), &rules),
            [
                "src/a.rs:2: rule A-2 is not in docs/spec.md",
                "src/a.rs:3: `// spec: A-1..2` is not of the form `// spec: SEG-3, ACK-1`",
            ]
        );
    }

    #[test]
    fn a_rule_without_a_test_is_unproven() {
        let mut named = Named::default();
        let text = "// spec: A-1, A-2, A-3\n#[cfg(test)]\nmod tests {\n// spec: A-1\n}\n";
        named.add(&Source::new("src/a.rs", text));
        named.add(&Source::new("tests/b.rs", "// spec: A-2\n"));
        assert_eq!(named.unproven(), ["src/a.rs:1: rule A-3 is named here and in no test"]);
    }
}
