//! What a model may write before its grammar binds: a block of thought.

use llguidance::toktrie::{SimpleVob, TokTrie};

/// How the answer begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Thought {
    /// The grammar binds from the first token.
    None,
    /// The answer may begin with the opening tag.
    MayOpen,
    /// The prompt has opened the block.
    Open,
}

/// The text up to the grammar's first token.
#[derive(Clone)]
pub struct Lead {
    opening: Vec<u8>,
    closing: Vec<u8>,
    place: Place,
    /// Tokens of thought that are left; then the closing tag is written.
    budget: Option<u32>,
}

#[derive(Clone)]
enum Place {
    Start,
    /// So many bytes of the opening tag are written.
    Opening(usize),
    /// The last bytes of the thought, as many as may belong to the closing tag.
    Inside(Vec<u8>),
    Done,
}

/// What the lead says of the next token.
pub enum Next {
    /// Anything but the end.
    Any,
    Only(SimpleVob),
    /// The grammar decides.
    Grammar,
    /// The grammar decides, or one of these begins a thought.
    GrammarOr(SimpleVob),
}

impl Lead {
    pub fn new(thought: Thought, opening: &str, closing: &str, budget: Option<u32>) -> Self {
        let place = match thought {
            Thought::None => Place::Done,
            Thought::MayOpen => Place::Start,
            Thought::Open => Place::Inside(Vec::new()),
        };
        Lead { opening: opening.into(), closing: closing.into(), place, budget }
    }

    pub fn done(&self) -> bool {
        matches!(self.place, Place::Done)
    }

    pub fn at_start(&self) -> bool {
        matches!(self.place, Place::Start)
    }

    pub fn bind(&mut self) {
        self.place = Place::Done;
    }

    /// Whether a first token begins the opening tag.
    pub fn opens(&self, word: &[u8]) -> bool {
        !word.is_empty() && (self.opening.starts_with(word) || word.starts_with(&self.opening))
    }

    /// `bound`: a grammar has to see the answer from its first byte.
    pub fn next(&self, trie: &TokTrie, bound: bool) -> Next {
        match &self.place {
            Place::Done => Next::Grammar,
            Place::Start => Next::GrammarOr(tokens_along(trie, &self.opening)),
            Place::Opening(_) if !bound => Next::Any,
            Place::Opening(written) => Next::Only(tokens_along(trie, &self.opening[*written..])),
            Place::Inside(tail) => match open_end(tail, &self.closing) {
                written if self.budget == Some(0) => Next::Only(tokens_within(trie, &self.closing[written..])),
                0 => Next::Any,
                _ if !bound => Next::Any,
                written => Next::Only(tokens_not_past(trie, &self.closing[written..])),
            },
        }
    }

    /// A token that the grammar did not take.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.place {
            Place::Start => self.open(0, bytes),
            Place::Opening(written) => {
                let written = *written;
                self.open(written, bytes);
            }
            Place::Inside(tail) => {
                self.budget = self.budget.map(|left| left.saturating_sub(1));
                tail.extend_from_slice(bytes);
                let size = self.closing.len();
                if tail.windows(size).any(|window| window == self.closing) {
                    self.place = Place::Done;
                } else if tail.len() >= size {
                    tail.drain(..tail.len() + 1 - size);
                }
            }
            Place::Done => {}
        }
    }

    fn open(&mut self, written: usize, bytes: &[u8]) {
        let rest = &self.opening[written..];
        if !rest.starts_with(bytes) && !bytes.starts_with(rest) {
            self.place = Place::Done; // it only looked like a tag
            return;
        }
        let written = written + bytes.len();
        if written < self.opening.len() {
            self.place = Place::Opening(written);
        } else {
            self.place = Place::Inside(Vec::new());
            let thought = &bytes[bytes.len() - (written - self.opening.len())..];
            if !thought.is_empty() {
                self.push(thought);
            }
        }
    }
}

/// Bytes at the end of `text` that begin `tag`.
fn open_end(text: &[u8], tag: &[u8]) -> usize {
    (1..tag.len().min(text.len() + 1)).rev().find(|&size| text.ends_with(&tag[..size])).unwrap_or(0)
}

/// Tokens that write the rest of a tag, or begin to.
fn tokens_along(trie: &TokTrie, rest: &[u8]) -> SimpleVob {
    let mut set = trie.alloc_token_set();
    for id in 0..trie.vocab_size() as u32 {
        let word = trie.token(id);
        if !word.is_empty() && (rest.starts_with(word) || word.starts_with(rest)) {
            set.allow_token(id);
        }
    }
    set
}

/// Tokens that write the rest of a tag, or a part of it, and nothing else.
fn tokens_within(trie: &TokTrie, rest: &[u8]) -> SimpleVob {
    let mut set = trie.alloc_token_set();
    for id in 0..trie.vocab_size() as u32 {
        let word = trie.token(id);
        if !word.is_empty() && rest.starts_with(word) {
            set.allow_token(id);
        }
    }
    set
}

/// All tokens but the ends and those that close the thought and go on with more than blanks: the
/// grammar has to see the answer from its first byte.
fn tokens_not_past(trie: &TokTrie, rest: &[u8]) -> SimpleVob {
    let mut set = trie.alloc_token_set();
    set.set_all(true);
    for id in 0..trie.vocab_size() as u32 {
        if let Some(more) = trie.token(id).strip_prefix(rest) {
            if more.iter().any(|byte| !byte.is_ascii_whitespace()) {
                set.disallow_token(id);
            }
        }
    }
    for &end in trie.eos_tokens() {
        set.disallow_token(end);
    }
    set
}
