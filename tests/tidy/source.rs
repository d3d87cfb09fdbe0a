//! A source file as the checks see it: code, comments, and which lines are test code.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use super::lexer::{Comment, Token, lex};

/// One Rust file of the project.
pub struct Source {
    /// Path from the project's folder, with forward slashes.
    pub path: String,
    pub text: String,
    pub code: Vec<Token>,
    pub comments: Vec<Comment>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let lexed = lex(text);
        let test_lines =
            if is_test_file(path) { vec![1..=usize::MAX] } else { test_items(&lexed.code) };
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text, code: lexed.code, comments: lexed.comments, test_lines }
    }

    pub fn is_test(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// A problem in this file, as the tests print it.
    pub fn problem(&self, line: usize, text: &str) -> String {
        format!("{}:{line}: {text}", self.path)
    }

    /// The lines of tokens at which `words` stand in a row.
    pub fn find(&self, words: &[&str]) -> Vec<usize> {
        let same = |row: &&[Token]| row.iter().zip(words).all(|(token, word)| token.text == *word);
        self.code.windows(words.len()).filter(same).map(|row| row[0].line).collect()
    }

    /// Paths that start with `root::`, groups taken apart: `use a::{b::c, d}`
    /// gives `a b c` and `a d`.
    pub fn paths(&self, root: &str) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for at in 0..self.code.len() {
            if self.text_at(at) == root && self.text_at(at + 1) == "::" && !self.is_continued(at) {
                self.path_tree(at + 2, &[root.to_owned()], &mut found);
            }
        }
        found
    }

    /// Functions with a body, nested ones too.
    pub fn functions(&self) -> Vec<Function> {
        (0..self.code.len()).filter_map(|at| self.function(at)).collect()
    }

    fn function(&self, at: usize) -> Option<Function> {
        let name = self.text_at(at + 1);
        if self.text_at(at) != "fn" || !name.starts_with(|c: char| c == '_' || c.is_alphabetic()) {
            return None;
        }
        let (_, body_end) = item_end(&self.code, at).filter(|(body, _)| *body)?;
        let line = self.code[at].line;
        Some(Function { name: name.to_owned(), line, lines: body_end + 1 - line })
    }

    fn text_at(&self, at: usize) -> &str {
        self.code.get(at).map_or("", |token| &token.text)
    }

    /// Whether the token is an inner part of a longer path (`x::std`) or a field (`x.std`).
    fn is_continued(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.text_at(at));
        let is_name = |text: &str| text.ends_with(|c: char| c == '_' || c.is_alphanumeric());
        before(1) == "." || (before(1) == "::" && is_name(before(2)) && before(2) != "use")
    }

    /// Adds the paths below `prefix` to `found`; gives the place behind them.
    fn path_tree(
        &self,
        at: usize,
        prefix: &[String],
        found: &mut Vec<(usize, Vec<String>)>,
    ) -> usize {
        let text = self.text_at(at);
        if text == "{" {
            return self.path_group(at + 1, prefix, found);
        }
        let mut path = prefix.to_vec();
        path.push(text.to_owned());
        if self.text_at(at + 1) == "::" && self.text_at(at + 2) != "<" {
            return self.path_tree(at + 2, &path, found);
        }
        found.push((self.code.get(at).map_or(0, |token| token.line), path));
        at + 1
    }

    fn path_group(
        &self,
        mut at: usize,
        prefix: &[String],
        found: &mut Vec<(usize, Vec<String>)>,
    ) -> usize {
        while !matches!(self.text_at(at), "}" | "") {
            at = self.path_tree(at, prefix, found);
            while !matches!(self.text_at(at), "," | "}" | "") {
                at += 1; // `as name`
            }
            at += usize::from(self.text_at(at) == ",");
        }
        at + 1
    }
}

/// All Rust files below `folder` of the project, in order of their paths.
pub fn read_all(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    read_folder(root, &root.join(folder), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            read_folder(root, &path, files);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).expect("a readable source file");
            let name = path.strip_prefix(root).expect("a path below the project's folder");
            files.push(Source::new(&name.to_string_lossy().replace('\\', "/"), &text));
        }
    }
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The lines of every item under `#[cfg(test)]`; all lines under `#![cfg(test)]`.
fn test_items(code: &[Token]) -> Vec<RangeInclusive<usize>> {
    let mut ranges = Vec::new();
    for at in 0..code.len() {
        if starts_with(&code[at..], &["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
            return vec![1..=usize::MAX];
        }
        if starts_with(&code[at..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            let end = item_end(code, at).map_or(usize::MAX, |(_, line)| line);
            ranges.push(code[at].line..=end);
        }
    }
    ranges
}

fn starts_with(code: &[Token], words: &[&str]) -> bool {
    code.len() >= words.len() && code.iter().zip(words).all(|(token, word)| token.text == *word)
}

/// Where the item that starts at `at` ends: whether it has a body in braces,
/// and its last line.
fn item_end(code: &[Token], at: usize) -> Option<(bool, usize)> {
    let (mut depth, mut braces) = (0_usize, 0_usize);
    for token in &code[at..] {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if braces == 0 && depth == 0 {
                    return Some((true, token.line));
                }
            }
            ";" if depth == 0 && braces == 0 => return Some((false, token.line)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, root: &str) -> Vec<String> {
        let found = Source::new("src/a.rs", text).paths(root);
        found.into_iter().map(|(line, path)| format!("{line} {}", path.join(" "))).collect()
    }

    #[test]
    fn paths_are_found_in_uses_and_in_code() {
        let text = "use crate::{a::b, c as d,\n e::{self, f::*}};\nfn g() -> crate::h::I { \
                    crate::j::<u8>() }\n// crate::no\nconst K: &str = \"crate::no\";";
        let want = [
            "1 crate a b",
            "1 crate c",
            "2 crate e self",
            "2 crate e f *",
            "3 crate h I",
            "3 crate j",
        ];
        assert_eq!(paths(text, "crate"), want);
    }

    #[test]
    fn a_path_starts_at_its_root() {
        assert_eq!(paths("use ::std::fs; x::std::net; x.std::net;", "std"), ["1 std fs"]);
        assert_eq!(paths("pub(crate) fn f() {}", "crate"), Vec::<String>::new());
        assert_eq!(paths("macro_rules! m { () => { $crate::a::b } }", "crate"), ["1 crate a b"]);
    }

    #[test]
    fn test_code_is_known() {
        let text = "a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n  fn f() {}\n}\nb\n#[cfg(test)]\nmod m;\nc\n";
        let file = Source::new("src/a.rs", text);
        let tests: Vec<_> = (1..=10).filter(|line| file.is_test(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 6, 8, 9]);
        assert!(Source::new("src/a.rs", "#![cfg(test)]\na").is_test(2));
        assert!(Source::new("src/nic/tests.rs", "a").is_test(1));
        assert!(Source::new("src/nic/tests/b.rs", "a").is_test(1));
        assert!(!Source::new("src/nic/contests.rs", "a").is_test(1));
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_last_brace() {
        let text = "fn a(x: [u8; 2],\n y: fn(u8)) {\n if x { y } else { \"}\" }\n}\ntrait T { fn b(); }\n\
                    struct S { f: fn() }\n";
        let want = Function { name: "a".to_owned(), line: 1, lines: 4 };
        assert_eq!(Source::new("src/a.rs", text).functions(), [want]);
    }
}
