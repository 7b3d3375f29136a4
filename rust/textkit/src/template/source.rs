//! Reads a template's source through the engine's own lexer: what the engine does not know is replaced
//! or refused at load, with its line.

use crate::error::{Error, Result};
use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::{ErrorKind, State};
use std::collections::HashSet;

/// `{% generation %}` marks what a trainer learns from and prints nothing. Its body is a scope of its
/// own, so `with` takes its place: the tag's dashes and every line stay where they are.
pub fn without_generation_tags(source: &str, syntax: &SyntaxConfig) -> std::result::Result<String, minijinja::Error> {
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    let mut in_tag = false;
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token?;
        let replacement = match token {
            Token::Ident("generation") if in_tag => "with",
            Token::Ident("endgeneration") if in_tag => "endwith",
            _ => "",
        };
        in_tag = matches!(token, Token::BlockStart);
        if !replacement.is_empty() {
            out += &source[copied..span.start_offset as usize];
            out += replacement;
            copied = span.end_offset as usize;
        }
    }
    out += &source[copied..];
    Ok(out)
}

struct Use {
    name: String,
    line: u32,
}

/// The identifiers and strings of a template.
#[derive(Default)]
pub struct Words {
    words: HashSet<String>,
    strings: Vec<String>,
    filters: Vec<Use>,
    tests: Vec<Use>,
}

impl Words {
    pub fn of(source: &str, syntax: &SyntaxConfig) -> Self {
        let mut words = Words::default();
        let mut before = Before::Other;
        for (token, span) in tokenize(source, false, syntax.clone()).map_while(std::result::Result::ok) {
            let here = |name: &str| Use { name: name.to_owned(), line: u32::from(span.start_line) };
            match (&token, before) {
                (Token::Ident(name), Before::Pipe) => words.filters.push(here(name)),
                (Token::Ident(name), Before::Is) if *name != "not" => words.tests.push(here(name)),
                _ => {}
            }
            before = match token {
                Token::Pipe => Before::Pipe,
                Token::Ident("is") => Before::Is,
                Token::Ident("not") if before == Before::Is => Before::Is,
                _ => Before::Other,
            };
            match token {
                Token::Ident(name) => drop(words.words.insert(name.to_owned())),
                Token::Str(text) => words.strings.push(text.to_owned()),
                Token::String(text) => words.strings.push(text.into()),
                _ => {}
            }
        }
        words
    }

    /// True for a variable, an attribute or a string (a role, say) of this name.
    pub fn mention(&self, word: &str) -> bool {
        let in_string = |text: &String| {
            text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
        };
        self.words.contains(word) || self.strings.iter().any(in_string)
    }

    /// Filters and tests that the engine lacks; it would notice only when it comes by.
    pub fn check(&self, state: &mut State) -> Result<()> {
        let unknown = |what: &str, used: &Use| {
            Error::bad_file(format!(
                "the chat template does not compile: line {}: unknown {what} {:?}",
                used.line, used.name
            ))
        };
        for used in &self.filters {
            if matches!(state.apply_filter(&used.name, &[]), Err(e) if e.kind() == ErrorKind::UnknownFilter) {
                return Err(unknown("filter", used));
            }
        }
        for used in &self.tests {
            if matches!(state.perform_test(&used.name, &[]), Err(e) if e.kind() == ErrorKind::UnknownTest) {
                return Err(unknown("test", used));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Before {
    Pipe,
    Is,
    Other,
}
