//! Brings a template's source into the form that the engine understands as Jinja2 does.

use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::Error;
use std::ops::Range;

/// The source as the engine can take it; every line stays where it is.
///
/// - `{% generation %}` marks what a trainer learns from and prints nothing. Its body is a scope of its
///   own, so `with` takes its place.
/// - `{% for x in list if test %}` tests each item when its turn comes, so that the body can change the
///   outcome; the engine would test all of them first. Unless the body asks `loop` for counts, the test
///   moves into an `if` inside the loop.
/// - A macro that sets `ns.x` but never reads `ns` would not see it: it is made to read it.
pub fn adapted(source: &str, syntax: &SyntaxConfig) -> Result<String, Error> {
    let mut edits = Edits::default();
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token?;
        edits.see(&token, span.start_offset as usize..span.end_offset as usize);
    }
    Ok(edits.apply(source))
}

#[derive(Default)]
struct Edits {
    edits: Vec<(Range<usize>, String)>,
    tag: Tag,
    blocks: Vec<Block>,
    /// Macros and calls that are open.
    macros: usize,
}

/// The tag that is being read.
#[derive(Default)]
struct Tag {
    /// Its first word comes next.
    first: bool,
    /// Brackets that are open.
    depth: i32,
    is_for: bool,
    /// Where `set` stands, and the name right after it.
    set: Option<Range<usize>>,
    set_name: Option<String>,
}

/// An open `for` or `if`: `else` belongs to the innermost.
#[derive(Default)]
struct Block {
    is_for: bool,
    /// Where the `if` of a `for` stands.
    test: Option<Range<usize>>,
    /// `loop` or `else` occur in it.
    counts: bool,
}

impl Edits {
    fn see(&mut self, token: &Token, at: Range<usize>) {
        let set_name = self.tag.set_name.take();
        match token {
            Token::BlockStart => self.tag = Tag { first: true, ..Tag::default() },
            Token::BlockEnd => self.tag = Tag::default(),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => self.tag.depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => self.tag.depth -= 1,
            Token::Ident(word) if std::mem::take(&mut self.tag.first) => self.first_word(word, at),
            Token::Ident(word) => self.later_word(word, at),
            Token::Dot => self.attribute_of(set_name),
            _ => self.tag.set = None,
        }
    }

    fn first_word(&mut self, word: &str, at: Range<usize>) {
        match word {
            "generation" => self.replace(at, "with"),
            "endgeneration" => self.replace(at, "endwith"),
            "macro" | "call" => self.macros += 1,
            "endmacro" | "endcall" => self.macros = self.macros.saturating_sub(1),
            "set" if self.macros > 0 => self.tag.set = Some(at),
            "for" => {
                self.tag.is_for = true;
                self.blocks.push(Block { is_for: true, ..Block::default() });
            }
            "if" => self.blocks.push(Block::default()),
            "endif" => drop(self.blocks.pop()),
            "endfor" => self.close_for(at),
            "else" => self.blocks.iter_mut().rev().take(1).for_each(|block| block.counts = true),
            _ => {}
        }
    }

    fn later_word(&mut self, word: &str, at: Range<usize>) {
        if self.tag.set.is_some() {
            self.tag.set_name = Some(word.to_owned());
        }
        match word {
            "if" if self.tag.is_for && self.tag.depth == 0 => {
                self.blocks.iter_mut().rev().take(1).for_each(|block| block.test = Some(at.clone()));
            }
            // In the head of a loop it is the outer loop's.
            "loop" | "recursive" if self.tag.is_for => {
                self.blocks.iter_mut().for_each(|block| block.counts = true);
            }
            "loop" => {
                let inner = self.blocks.iter_mut().rev().find(|block| block.is_for);
                inner.into_iter().for_each(|block| block.counts = true);
            }
            _ => {}
        }
    }

    /// `{% set name.attribute = ... %}` inside a macro.
    fn attribute_of(&mut self, name: Option<String>) {
        if let (Some(name), Some(at)) = (name, self.tag.set.take()) {
            self.replace(at, &format!("if {name} %}}{{% endif %}}{{% set"));
        }
    }

    fn close_for(&mut self, at: Range<usize>) {
        if let Some(Block { is_for: true, test: Some(test), counts: false }) = self.blocks.pop() {
            self.replace(test, "%}{% if");
            self.replace(at, "endif %}{% endfor");
        }
    }

    fn replace(&mut self, at: Range<usize>, text: &str) {
        self.edits.push((at, text.to_owned()));
    }

    fn apply(mut self, source: &str) -> String {
        self.edits.sort_by_key(|(at, _)| at.start);
        let mut out = String::with_capacity(source.len());
        let mut copied = 0;
        for (at, text) in self.edits {
            out += &source[copied..at.start];
            out += &text;
            copied = at.end;
        }
        out += &source[copied..];
        out
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
        assert_eq!(
            adapted("{% for x in y if x %}{% for z in w %}{{ loop.index }}{% endfor %}{% endfor %}"),
            "{% for x in y %}{% if x %}{% for z in w %}{{ loop.index }}{% endfor %}{% endif %}{% endfor %}"
        );
        assert_eq!(
            adapted("{% macro m() %}{%- set ns.a = 1 -%}{% set b = 1 %}{% endmacro %}{% set ns.a = 1 %}"),
            "{% macro m() %}{%- if ns %}{% endif %}{% set ns.a = 1 -%}{% set b = 1 %}{% endmacro %}{% set ns.a = 1 %}"
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
