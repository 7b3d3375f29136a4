//! Reads a template's source through the engine's own lexer.

use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::Error;
use std::collections::HashSet;

/// `{% generation %}` marks what a trainer learns from and prints nothing. Its body is a scope of its
/// own, so `with` takes its place: the tag's dashes and every line stay where they are.
pub fn without_generation_tags(source: &str, syntax: &SyntaxConfig) -> Result<String, Error> {
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

/// The identifiers and strings of a template.
pub struct Words {
    words: HashSet<String>,
    strings: Vec<String>,
}

impl Words {
    pub fn of(source: &str, syntax: &SyntaxConfig) -> Self {
        let mut words = HashSet::new();
        let mut strings = Vec::new();
        for (token, _) in tokenize(source, false, syntax.clone()).map_while(Result::ok) {
            match token {
                Token::Ident(name) => drop(words.insert(name.to_owned())),
                Token::Str(text) => strings.push(text.to_owned()),
                Token::String(text) => strings.push(text.into()),
                _ => {}
            }
        }
        Words { words, strings }
    }

    /// True for a variable, an attribute or a string (a role, say) of this name.
    pub fn mention(&self, word: &str) -> bool {
        let in_string =
            |text: &String| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
        self.words.contains(word) || self.strings.iter().any(in_string)
    }
}
