//! Answers bound to a JSON schema, a regular expression or a Lark grammar, through llguidance.

mod lead;
mod matcher;
mod schema;

pub use lead::{Lead, Thought};
pub use matcher::{Allowed, Matcher};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::ParserFactory;
use std::sync::Arc;

const MAX_SCHEMA_BYTES: usize = 256 * 1024;
const MAX_LARK_BYTES: usize = 256 * 1024;
const MAX_REGEX_BYTES: usize = 16 * 1024;
const MAX_NESTING: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    JsonSchema,
    Regex,
    Lark,
}

/// What every grammar of one tokenizer shares: its tokens as a trie, and the limits of llguidance.
pub struct Grammars {
    factory: ParserFactory,
}

/// A compiled grammar: the matcher that each answer starts from.
pub struct Grammar {
    start: llguidance::Matcher,
}

impl Grammars {
    /// `ends`: the ids that may end an answer; they are allowed where the grammar is complete.
    pub fn new(tokenizer: &Tokenizer, ends: &[i32]) -> Result<Self> {
        let size = tokenizer.vocab_size();
        let mut words: Vec<Vec<u8>> = (0..size).map(|id| trie_word(tokenizer, id as i32)).collect();
        words.push(Vec::new()); // stands for the end where a model declares none
        let ends: Vec<u32> = ends.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        let ends: Vec<u32> = ends.into_iter().filter(|&id| (id as usize) < size).collect();
        let ends = if ends.is_empty() { vec![size as u32] } else { ends };
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, ends[0]), &words).with_eos_tokens(&ends);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(|e| Error::internal(e.to_string()))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        limits.max_grammar_size = 200_000;
        limits.max_lexer_states = 50_000;
        Ok(Grammars { factory })
    }

    fn env(&self) -> &TokEnv {
        self.factory.tok_env()
    }

    /// The message of a refusal has two lines: the path of the keyword inside the text ("" for all of
    /// it), and what is wrong there.
    pub fn compile(&self, kind: Kind, text: &str) -> Result<Grammar> {
        let refuse = |message: String| Error::bad_request(format!("\n{message}"));
        match kind {
            Kind::JsonSchema => self.compile_schema(text),
            Kind::Regex => {
                check_size(text, MAX_REGEX_BYTES).map_err(refuse)?;
                check_nesting(text).map_err(refuse)?;
                if schema::repeats_nothing(text) {
                    return Err(refuse("the repeat sign has nothing to repeat".into()));
                }
                self.parser(TopLevelGrammar::from_regex(without_anchors(text))).map_err(refuse)
            }
            Kind::Lark => {
                check_size(text, MAX_LARK_BYTES).map_err(refuse)?;
                self.parser(TopLevelGrammar::from_lark(text.to_string())).map_err(refuse)
            }
        }
    }

    fn compile_schema(&self, text: &str) -> Result<Grammar> {
        check_size(text, MAX_SCHEMA_BYTES).map_err(|message| Error::bad_request(format!("\n{message}")))?;
        let schema = schema::prepare(text)?;
        self.parser(TopLevelGrammar::from_json_schema(schema.clone())).map_err(|message| {
            let compiles = |small| self.parser(TopLevelGrammar::from_json_schema(small)).err();
            let (path, message) = schema::blame(&schema, &compiles).unwrap_or((String::new(), message));
            Error::bad_request(format!("{path}\n{message}"))
        })
    }

    fn parser(&self, grammar: TopLevelGrammar) -> std::result::Result<Grammar, String> {
        let start = llguidance::Matcher::new(self.factory.create_parser(grammar));
        if let Some(message) = start.get_error() {
            return Err(first_line(&message));
        }
        // The first mask is the dearest; it also shows a grammar that nothing satisfies.
        let mut probe = start.clone();
        match probe.compute_mask_or_eos() {
            Ok(mask) if !mask.is_zero() => Ok(Grammar { start }),
            Ok(_) => Err("nothing can satisfy it".into()),
            Err(e) => Err(first_line(&e.to_string())),
        }
    }
}

/// Special tokens carry llguidance's mark, so that text never matches them.
fn trie_word(tokenizer: &Tokenizer, id: i32) -> Vec<u8> {
    let mut word = Vec::new();
    if tokenizer.is_special(id) {
        word.push(TokTrie::SPECIAL_TOKEN_MARKER);
        tokenizer.append_bytes(id, &mut word);
    } else {
        tokenizer.append_bytes(id, &mut word);
        if word.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
            word.clear(); // no text in UTF-8 has this byte
        }
    }
    word
}

fn check_size(text: &str, most: usize) -> std::result::Result<(), String> {
    if text.len() > most {
        return Err(format!("it has {} bytes; at most {most} are compiled", text.len()));
    }
    Ok(())
}

/// The regular expression's parser recurses for each open group.
fn check_nesting(text: &str) -> std::result::Result<(), String> {
    let (mut open, mut escaped) = (0usize, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_NESTING {
            return Err(format!("it nests more than {MAX_NESTING} groups"));
        }
    }
    Ok(())
}

/// The whole answer has to match, so the anchors say nothing.
fn without_anchors(regex: &str) -> &str {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    match regex.strip_suffix('$') {
        Some(body) if body.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 0 => body,
        _ => regex,
    }
}

fn first_line(message: &str) -> String {
    message.lines().find(|line| !line.trim().is_empty()).unwrap_or("it cannot be compiled").trim().to_string()
}
