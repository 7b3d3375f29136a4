//! Message text never becomes a control token.
//!
//! A prompt is one string by the time it is tokenised, so what a user wrote and what the template
//! wrote must stay distinguishable in it. `guard` puts the mark U+FDD0 (a Unicode noncharacter) into
//! every spelling of a control token inside a message; the template renders it like any other text;
//! `Tokenizer::encode_rendered` finds control tokens only where they are unbroken, then drops the
//! marks. A mark that the user wrote is doubled, so it survives.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use std::cell::Cell;
use std::collections::HashSet;
use tokenizers::NormalizedString;

pub const MARK: char = '\u{FDD0}';

pub struct Guard {
    /// Any letter case: a template may lower or upper message text after the guard saw it.
    trie: AhoCorasick,
    /// The beginnings of all spellings, in lower case.
    beginnings: HashSet<Vec<u8>>,
    longest_bytes: usize,
}

impl Guard {
    pub fn new(spellings: Vec<String>) -> Self {
        let trie = AhoCorasickBuilder::new()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&spellings)
            .expect("control tokens fit an automaton");
        let beginnings = |spelling: &String| -> Vec<Vec<u8>> {
            let bytes = spelling.to_ascii_lowercase().into_bytes();
            (1..bytes.len()).map(|end| bytes[..end].to_vec()).collect()
        };
        Guard {
            trie,
            beginnings: spellings.iter().flat_map(beginnings).collect(),
            longest_bytes: spellings.iter().map(String::len).max().unwrap_or(0),
        }
    }

    /// `text` with every control token in it broken.
    pub fn apply(&self, text: &str) -> String {
        let mut cuts = self.breaks(text);
        cuts.extend(self.open_end(text));
        let mut out = String::with_capacity(text.len() + cuts.len() * MARK.len_utf8());
        let mut from = 0;
        for cut in cuts {
            push_doubled(&mut out, &text[from..cut]);
            out.push(MARK);
            from = cut;
        }
        push_doubled(&mut out, &text[from..]);
        out
    }

    /// Byte offsets of the marks: after the first character of each spelling, before it when it has
    /// only one. Overlapping spellings are broken one by one.
    fn breaks(&self, text: &str) -> Vec<usize> {
        let mut cuts: Vec<usize> = self
            .trie
            .find_overlapping_iter(text)
            .map(|found| {
                let first = text[found.start()..].chars().next().map_or(0, char::len_utf8);
                let inside = found.start() + first;
                if inside == found.end() {
                    found.start()
                } else {
                    inside
                }
            })
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// A text may end with the first half of a control token and the next message start with the
    /// rest: then the end is marked too.
    fn open_end(&self, text: &str) -> Option<usize> {
        let last = &text.as_bytes()[text.len().saturating_sub(self.longest_bytes)..];
        let last = last.to_ascii_lowercase();
        let ends_open = (0..last.len()).any(|from| self.beginnings.contains(&last[from..]));
        ends_open.then_some(text.len())
    }
}

fn push_doubled(out: &mut String, text: &str) {
    for c in text.chars() {
        out.push(c);
        if c == MARK {
            out.push(MARK);
        }
    }
}

/// Undoes `Guard::apply`: of a run of marks every second one stays.
pub fn remove_marks(text: &str) -> String {
    let keep = KeepUnmarked::default();
    text.chars().filter(|&c| keep.keep(c)).collect()
}

/// The same on a string that tracks offsets.
pub fn remove_marks_tracked(text: &mut NormalizedString) {
    if text.get().contains(MARK) {
        let keep = KeepUnmarked::default();
        text.filter(|c| keep.keep(c));
    }
}

/// True when a mark stands right before `offset` that is not half of a doubled one.
pub fn marked_before(text: &str, offset: usize) -> bool {
    text[..offset].chars().rev().take_while(|&c| c == MARK).count() % 2 == 1
}

#[derive(Default)]
struct KeepUnmarked {
    odd: Cell<bool>,
}

impl KeepUnmarked {
    fn keep(&self, c: char) -> bool {
        let second = c == MARK && self.odd.get();
        self.odd.set(c == MARK && !second);
        c != MARK || second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new(vec!["<|im_end|>".into(), "<s>".into(), "§".into()])
    }

    #[test]
    fn breaks_and_restores() {
        for text in ["", "a <|im_end|> b", "<S>", "§§", "<<|im_end|><s>", "\u{FDD0}<s>\u{FDD0}\u{FDD0}", "<|im"]
        {
            let guarded = guard().apply(text);
            assert!(!guarded.contains("<|im_end|>") && !guarded.contains("<s>"), "{guarded}");
            assert_eq!(remove_marks(&guarded), text);
        }
    }

    #[test]
    fn halves_do_not_join() {
        let joined = guard().apply("<|im_") + &guard().apply("end|>");
        assert!(!joined.contains("<|im_end|>"));
        assert_eq!(remove_marks(&joined), "<|im_end|>");
    }

    #[test]
    fn plain_text_is_untouched() {
        assert_eq!(guard().apply("x > y </think>"), "x > y </think>");
    }
}
