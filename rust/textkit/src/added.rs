//! Added tokens: found in the raw text first, then in the normalized text, as Hugging Face does, but
//! with the choice of mode made per call.

use crate::guard::{marked_before, remove_marks_tracked};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;
use tokenizers::normalizer::Range as Span;
use tokenizers::{AddedToken, NormalizedString, Normalizer, NormalizerWrapper, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Text that spells a control token stays text.
    Ordinary,
    /// Text that spells a control token becomes it.
    ParseSpecial,
    /// Like ParseSpecial where the guard's marks do not break the spelling.
    Rendered,
}

struct Entry {
    id: u32,
    token: AddedToken,
}

struct Matcher {
    trie: AhoCorasick,
    entries: Vec<Entry>,
}

pub type Piece = (NormalizedString, Option<Vec<Token>>);

pub struct AddedTokens {
    raw: Matcher,
    normalized: Matcher,
}

impl AddedTokens {
    pub fn new(tokens: Vec<(u32, AddedToken)>, normalizer: Option<&NormalizerWrapper>) -> Result<Self, String> {
        let (normalized, raw): (Vec<_>, Vec<_>) = tokens.into_iter().partition(|(_, token)| token.normalized);
        let mut patterns = Vec::with_capacity(normalized.len());
        for (_, token) in &normalized {
            let mut content = NormalizedString::from(token.content.as_str());
            if let Some(normalizer) = normalizer {
                normalizer.normalize(&mut content).map_err(|e| e.to_string())?;
            }
            patterns.push(content.get().to_owned());
        }
        let contents = raw.iter().map(|(_, token)| token.content.clone()).collect();
        Ok(AddedTokens { raw: Matcher::new(contents, raw)?, normalized: Matcher::new(patterns, normalized)? })
    }

    /// First pass. In `Rendered` mode the ordinary pieces lose their marks and are searched again for
    /// added tokens that are not control tokens.
    pub fn split_raw(&self, text: NormalizedString, mode: Mode) -> Vec<Piece> {
        let pieces = self.raw.split(text, mode);
        if mode != Mode::Rendered {
            return pieces;
        }
        pieces.into_iter().flat_map(|piece| self.without_marks(piece)).collect()
    }

    fn without_marks(&self, (mut text, tokens): Piece) -> Vec<Piece> {
        if tokens.is_some() || !text.get().contains(crate::guard::MARK) {
            return vec![(text, tokens)];
        }
        remove_marks_tracked(&mut text);
        if text.is_empty() {
            return Vec::new();
        }
        self.raw.split(text, Mode::Ordinary)
    }

    /// Second pass, on text that the normalizer has seen.
    pub fn split_normalized(&self, text: NormalizedString, mode: Mode) -> Vec<Piece> {
        self.normalized.split(text, mode)
    }
}

impl Matcher {
    fn new(patterns: Vec<String>, tokens: Vec<(u32, AddedToken)>) -> Result<Self, String> {
        // An empty pattern would match everywhere: a normalizer may leave nothing of a token.
        let (patterns, entries): (Vec<_>, Vec<_>) = patterns
            .into_iter()
            .zip(tokens)
            .filter(|(pattern, _)| !pattern.is_empty())
            .map(|(pattern, (id, token))| (pattern, Entry { id, token }))
            .unzip();
        let trie = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|e| e.to_string())?;
        Ok(Matcher { trie, entries })
    }

    fn split(&self, text: NormalizedString, mode: Mode) -> Vec<Piece> {
        if self.entries.is_empty() {
            return vec![(text, None)];
        }
        let found = self.find(&text, mode);
        if found.is_empty() {
            return vec![(text, None)];
        }
        let slice = |range: Range<usize>| text.slice(Span::Normalized(range)).expect("cut at a character");
        let mut pieces = Vec::with_capacity(found.len() * 2 + 1);
        let mut from = 0;
        for (id, range) in found {
            if from < range.start {
                pieces.push((slice(from..range.start), None));
            }
            from = range.end;
            let token = slice(range);
            let length = token.get().len();
            pieces.push((token, Some(vec![Token::new(id, String::new(), (0, length))])));
        }
        if from < text.get().len() {
            pieces.push((slice(from..text.get().len()), None));
        }
        pieces
    }

    fn find(&self, text: &NormalizedString, mode: Mode) -> Vec<(u32, Range<usize>)> {
        let sentence = text.get();
        let mut found = Vec::new();
        let mut previous_end = 0;
        for at in self.trie.find_iter(sentence) {
            let entry = &self.entries[at.pattern().as_usize()];
            if !entry.allowed(text, at.range(), mode) {
                continue;
            }
            let mut range = at.range();
            if entry.token.lstrip {
                range.start = sentence[..range.start].trim_end().len().max(previous_end).min(range.start);
            }
            if entry.token.rstrip {
                let rest = &sentence[range.end..];
                range.end += rest.len() - rest.trim_start().len();
            }
            previous_end = range.end;
            found.push((entry.id, range));
        }
        found
    }
}

impl Entry {
    fn allowed(&self, text: &NormalizedString, at: Range<usize>, mode: Mode) -> bool {
        let sentence = text.get();
        if self.token.single_word {
            let before = sentence[..at.start].chars().next_back();
            let after = sentence[at.end..].chars().next();
            if before.is_some_and(is_word) || after.is_some_and(is_word) {
                return false;
            }
        }
        match mode {
            _ if !self.token.special => true,
            Mode::Ordinary => false,
            Mode::ParseSpecial => true,
            Mode::Rendered => !self.marked(sentence, at.start) && self.spelt_in_original(text, at),
        }
    }

    /// Only a spelling of one character has its mark outside.
    fn marked(&self, sentence: &str, start: usize) -> bool {
        self.token.content.chars().count() == 1 && marked_before(sentence, start)
    }

    /// A normalizer may turn other text into the spelling of a control token (full-width letters,
    /// dropped marks): only text that was written so counts.
    fn spelt_in_original(&self, text: &NormalizedString, at: Range<usize>) -> bool {
        text.get_range_original(Span::Normalized(at))
            .is_some_and(|original| original.contains(&self.token.content))
    }
}

fn is_word(c: char) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\w$").expect("a valid pattern"));
    WORD.is_match(c.encode_utf8(&mut [0; 4]))
}
