//! What a template mentions, read through the engine's own lexer.

use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;
use std::collections::HashSet;

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
