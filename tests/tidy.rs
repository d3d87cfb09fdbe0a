//! The rules of the house, as tests: who imports whom, what the pure layers
//! may not name, which protocol rules are named and proven, and how long a
//! function may be. Each failure lists `file:line: what is wrong`.

#[path = "tidy/coverage.rs"]
mod coverage;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/lexer.rs"]
mod lexer;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/style.rs"]
mod style;

use std::fs;
use std::io::{Write, stderr};
use std::path::Path;

use coverage::Coverage;
use source::{Source, read_all};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn spec_text() -> String {
    read(rules::SPEC)
}

fn src() -> Vec<Source> {
    let files = read_all("src");
    assert!(files.iter().any(|file| file.path == "src/lib.rs"), "src/lib.rs was not found");
    files
}

fn src_and_tests() -> Vec<Source> {
    src().into_iter().chain(read_all("tests")).collect()
}

fn named() -> rules::Named {
    let mut named = rules::Named::default();
    src_and_tests().iter().for_each(|file| named.add(file));
    named
}

/// Fails with every problem that `check` finds in `files`.
fn check_each(files: &[Source], check: impl FnMut(&Source) -> Vec<String>) {
    report(&files.iter().flat_map(check).collect::<Vec<_>>());
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "{} problem(s):\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn imports_go_down_only() {
    check_each(&src(), layers::import_problems);
}

#[test]
fn every_module_has_a_layer() {
    let lib = src().into_iter().find(|file| file.path == "src/lib.rs").expect("src/lib.rs");
    report(&layers::module_problems(&lib));
}

#[test]
fn pure_layers_stay_pure() {
    check_each(&src(), layers::purity_problems);
}

#[test]
fn spec_states_each_rule_once() {
    let text = spec_text();
    assert!(!rules::stated(&text).is_empty(), "{} states no rules", rules::SPEC);
    report(&rules::document_problems(&text));
}

#[test]
fn spec_comments_name_rules_that_exist() {
    let stated = rules::stated(&spec_text());
    check_each(&src_and_tests(), |file| rules::comment_problems(file, &stated));
}

#[test]
fn every_rule_named_in_code_is_named_in_a_test() {
    report(&named().unproven());
}

#[test]
fn spec_coverage_is_complete_but_for_what_is_not_yet() {
    let (stated, named) = (rules::stated(&spec_text()), named());
    let list = read(coverage::NOT_YET);
    let coverage = Coverage::new(stated.keys().map(String::as_str), &named, &list);
    // Written past the test harness, which shows prints of failed tests only.
    let table = format!("\n{}, rule by rule:\n{}", rules::SPEC, coverage.report());
    stderr().write_all(table.as_bytes()).expect("standard error");
    report(&coverage.problems());
}

#[test]
fn functions_and_files_are_short() {
    check_each(&src(), style::size_problems);
}

#[test]
fn unsafe_code_has_two_homes() {
    check_each(&src_and_tests(), style::unsafe_problems);
}

#[test]
fn nothing_is_left_unfinished() {
    check_each(&src(), style::unfinished_problems);
}
