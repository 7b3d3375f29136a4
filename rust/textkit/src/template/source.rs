//! Reads a template's source through the engine's own lexer.

use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::Error;
use std::collections::HashSet;
use std::ops::Range;

/// The source as the engine can take it; every line stays where it is.
///
/// - `{% generation %}` marks what a trainer learns from and prints nothing. Its body is a scope of its
///   own, so `with` takes its place.
/// - `{% for x in list if test %}` tests each item when its turn comes, so that the body can change the
///   outcome; the engine would test all of them first. Unless the body asks `loop` for counts, the test
///   moves into an `if` inside the loop.
pub fn adapted(source: &str, syntax: &SyntaxConfig) -> Result<String, Error> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut open = OpenBlocks::default();
    let mut tag = Tag::default();
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token?;
        let at = span.start_offset as usize..span.end_offset as usize;
        match &token {
            Token::BlockStart => tag = Tag { first: true, ..Tag::default() },
            Token::BlockEnd => tag = Tag::default(),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => tag.depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => tag.depth -= 1,
            Token::Ident("generation") if tag.first => edits.push((at, "with")),
            Token::Ident("endgeneration") if tag.first => edits.push((at, "endwith")),
            Token::Ident(name) => open.word(name, &mut tag, at, &mut edits),
            _ => {}
        }
        if !matches!(token, Token::BlockStart) {
            tag.first = false;
        }
    }
    edits.sort_by_key(|(at, _)| at.start);
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    for (at, replacement) in edits {
        out += &source[copied..at.start];
        out += replacement;
        copied = at.end;
    }
    out += &source[copied..];
    Ok(out)
}

type Edit = (Range<usize>, &'static str);

/// The tag that is being read: whether its first word comes next, brackets that are open, `for`.
#[derive(Default)]
struct Tag {
    first: bool,
    depth: i32,
    is_for: bool,
}

/// Blocks that `else` can belong to.
#[derive(Default)]
struct OpenBlocks(Vec<Open>);

#[derive(Default)]
struct Open {
    is_for: bool,
    /// Where the `if` of a `for` stands.
    test: Option<Range<usize>>,
    /// `loop` or `else` occur in it.
    counts: bool,
}

impl OpenBlocks {
    fn word(&mut self, name: &str, tag: &mut Tag, at: Range<usize>, edits: &mut Vec<Edit>) {
        match name {
            "for" if tag.first => {
                tag.is_for = true;
                self.0.push(Open { is_for: true, ..Open::default() });
            }
            "if" if tag.first => self.0.push(Open::default()),
            "endif" if tag.first => drop(self.0.pop()),
            "endfor" if tag.first => self.close_for(at, edits),
            "else" if tag.first => self.0.iter_mut().rev().take(1).for_each(|block| block.counts = true),
            "if" if tag.is_for && tag.depth == 0 => {
                self.0.iter_mut().rev().take(1).for_each(|block| block.test = Some(at.clone()));
            }
            "loop" | "recursive" => self.0.iter_mut().for_each(|block| block.counts = true),
            _ => {}
        }
    }

    fn close_for(&mut self, at: Range<usize>, edits: &mut Vec<Edit>) {
        if let Some(Open { is_for: true, test: Some(test), counts: false }) = self.0.pop() {
            edits.push((test, "%}{% if"));
            edits.push((at, "endif %}{% endfor"));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_and_tested_loops() {
        let adapted = |source: &str| adapted(source, &SyntaxConfig::default()).unwrap();
        assert_eq!(
            adapted("{%- generation -%}{{ 'generation' }}{% endgeneration %}"),
            "{%- with -%}{{ 'generation' }}{% endwith %}"
        );
        assert_eq!(
            adapted("{% for x in y if x -%}{{ x }}{%- endfor %}"),
            "{% for x in y %}{% if x -%}{{ x }}{%- endif %}{% endfor %}"
        );
        for unchanged in [
            "{% for x in y if x %}{{ loop.index }}{% endfor %}",
            "{% for x in y if x %}{% else %}{% endfor %}",
            "{% for x in (y if z else w) %}{{ x if y else z }}{% endfor %}",
            "{% raw %}{% generation %}{% endraw %}{# {% for x in y if x %} #}",
        ] {
            assert_eq!(adapted(unchanged), unchanged);
        }
        assert_eq!(
            adapted("{% for x in y if x %}{% if a %}{% else %}{% endif %}{% endfor %}"),
            "{% for x in y %}{% if x %}{% if a %}{% else %}{% endif %}{% endif %}{% endfor %}"
        );
    }
}
