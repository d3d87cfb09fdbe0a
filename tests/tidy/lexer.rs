//! A small Rust lexer: enough to tell code from comments and strings.

use std::iter::Peekable;
use std::str::Chars;

/// A piece of code: an identifier or keyword, `::`, or one other character.
/// Strings, characters, lifetimes and numbers become an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub line: usize,
    pub text: String,
}

/// A comment with its slashes, without the end of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub line: usize,
    pub text: String,
}

/// The two halves of a source text.
#[derive(Debug, Default)]
pub struct Lexed {
    pub code: Vec<Token>,
    pub comments: Vec<Comment>,
}

/// Splits `text` into code and comments.
pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer { rest: text.chars().peekable(), line: 1, out: Lexed::default() };
    while let Some(c) = lexer.next() {
        lexer.token(c);
    }
    lexer.out
}

struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    out: Lexed,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    fn peek(&mut self, ahead: usize) -> Option<char> {
        if ahead == 0 { self.rest.peek().copied() } else { self.rest.clone().nth(ahead) }
    }

    fn push(&mut self, line: usize, text: impl Into<String>) {
        self.out.code.push(Token { line, text: text.into() });
    }

    fn token(&mut self, c: char) {
        let line = self.line;
        match c {
            '/' if self.peek(0) == Some('/') => self.line_comment(line),
            '/' if self.peek(0) == Some('*') => self.block_comment(line),
            '"' => self.string(line),
            '\'' => self.quote(line),
            ':' if self.peek(0) == Some(':') => {
                self.next();
                self.push(line, "::");
            }
            c if c.is_ascii_digit() => {
                self.word(c);
                self.push(line, "");
            }
            c if is_word(c) => self.ident(c, line),
            c if c.is_whitespace() => {}
            c => self.push(line, c),
        }
    }

    fn line_comment(&mut self, line: usize) {
        let mut text = String::from("/");
        while self.peek(0).is_some_and(|c| c != '\n') {
            text.extend(self.next());
        }
        self.out.comments.push(Comment { line, text: text.trim_end().to_owned() });
    }

    /// Block comments nest.
    fn block_comment(&mut self, line: usize) {
        let (mut text, mut depth, mut before) = (String::from("/"), 0, '/');
        while let Some(c) = self.next() {
            text.push(c);
            match (before, c) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    before = c;
                    continue;
                }
            }
            before = ' '; // `/*/` opens and does not close
            if depth == 0 {
                break;
            }
        }
        self.out.comments.push(Comment { line, text });
    }

    fn string(&mut self, line: usize) {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.skip(1),
                '"' => break,
                _ => {}
            }
        }
        self.push(line, "");
    }

    /// `r"..."` or `r#"..."#`, from behind the `r`.
    fn raw_string(&mut self, line: usize) {
        let mut hashes = 0;
        while self.next() == Some('#') {
            hashes += 1;
        }
        let mut open = true;
        while open {
            match self.next() {
                Some('"') => open = (0..hashes).any(|ahead| self.peek(ahead) != Some('#')),
                Some(_) => {}
                None => open = false,
            }
        }
        self.skip(hashes);
        self.push(line, "");
    }

    /// A character literal or a lifetime.
    fn quote(&mut self, line: usize) {
        if self.peek(0) == Some('\\') {
            self.skip(2);
            while self.next().is_some_and(|c| c != '\'') {}
        } else if self.peek(1) == Some('\'') {
            self.skip(2);
        } else {
            self.word('\'');
        }
        self.push(line, "");
    }

    fn ident(&mut self, first: char, line: usize) {
        let word = self.word(first);
        match (word.as_str(), self.peek(0), self.peek(1)) {
            ("b" | "c", Some('"'), _) => {
                self.next();
                self.string(line);
            }
            ("b", Some('\''), _) => {
                self.next();
                self.quote(line);
            }
            ("r" | "br" | "cr", Some('"'), _) | ("r" | "br" | "cr", Some('#'), Some('"' | '#')) => {
                self.raw_string(line);
            }
            ("r", Some('#'), Some(_)) => {}
            _ => self.push(line, word),
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while self.peek(0).is_some_and(is_word) {
            word.extend(self.next());
        }
        word
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        lex(text).code.into_iter().map(|token| token.text).filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn strings_and_characters_are_no_code() {
        let text = r####"a "x \" y" b r#"c " d"# e 'f' '\'' '"' g b"h" br"i" b'j' <'k> 1_u8"####;
        assert_eq!(words(text), ["a", "b", "e", "g", "<", ">"]);
    }

    #[test]
    fn comments_keep_their_text_and_line() {
        let lexed = lex("a // one\n/*/ two /* three */ */ b\n\"// four\" /// five\n");
        let seen: Vec<_> = lexed.comments.iter().map(|c| (c.line, c.text.as_str())).collect();
        assert_eq!(seen, [(1, "// one"), (2, "/*/ two /* three */ */"), (3, "/// five")]);
        assert_eq!(lexed.code[1], Token { line: 2, text: "b".to_owned() });
    }

    #[test]
    fn lines_are_counted_inside_strings() {
        assert_eq!(lex("\"\n\\\n\" a").code[1].line, 3);
        assert_eq!(lex("r#\"\n\n\"# a").code[1].line, 3);
    }
}
