//! The place of one answer in its grammar.

use super::lead::{Lead, Next};
use super::{Grammar, Grammars};
use crate::error::{Error, Result};
use llguidance::toktrie::{SimpleVob, TokEnv};

pub struct Matcher {
    grammar: Option<llguidance::Matcher>, // None: after the thought the answer is free
    lead: Lead,
    env: TokEnv,
}

/// The ids that may come next.
pub enum Allowed {
    Any,
    AnyButEnd,
    Only(SimpleVob),
}

impl Matcher {
    /// The answer of its own: caches are not shared, so that masks of many answers are computed side by
    /// side.
    pub fn new(grammars: &Grammars, grammar: Option<&Grammar>, lead: Lead) -> Self {
        let env = grammars.env().clone();
        Matcher { grammar: grammar.map(|grammar| grammar.start.deep_clone()), lead, env }
    }

    pub fn mask(&mut self) -> Result<Allowed> {
        let bound = self.grammar.is_some();
        match self.lead.next(self.env.tok_trie(), bound) {
            Next::Any if bound => Ok(Allowed::AnyButEnd),
            Next::Any => Ok(Allowed::Any),
            Next::Only(set) => Ok(Allowed::Only(set)),
            Next::Grammar => self.grammar_mask(),
            Next::GrammarOr(mut set) => match self.grammar_mask()? {
                Allowed::Only(mask) => {
                    set.or(&mask);
                    Ok(Allowed::Only(set))
                }
                other => Ok(other),
            },
        }
    }

    /// What was chosen; true when nothing may follow it.
    pub fn accept(&mut self, id: u32) -> Result<bool> {
        if self.lead.at_start() && self.grammar_takes(id)? {
            self.lead.bind();
        }
        if !self.lead.done() {
            self.lead.push(self.env.tok_trie().token(id));
            return Ok(false);
        }
        let Some(grammar) = &mut self.grammar else { return Ok(false) };
        grammar.consume_token(id).map_err(failure)?;
        Ok(grammar.is_stopped())
    }

    /// At the start: whether the token belongs to the answer and begins no thought.
    fn grammar_takes(&mut self, id: u32) -> Result<bool> {
        match self.grammar_mask()? {
            Allowed::Only(mask) => Ok(mask.is_allowed(id)),
            _ => Ok(!self.lead.opens(self.env.tok_trie().token(id))),
        }
    }

    fn grammar_mask(&mut self) -> Result<Allowed> {
        match &mut self.grammar {
            Some(grammar) => grammar.compute_mask_or_eos().map(Allowed::Only).map_err(failure),
            None => Ok(Allowed::Any),
        }
    }
}

fn failure(error: anyhow::Error) -> Error {
    let message = error.to_string();
    let line = message.lines().next().unwrap_or_default();
    Error::bad_request(format!("the grammar cannot be followed any further: {line}"))
}
