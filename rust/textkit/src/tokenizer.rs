//! Text to token ids and back.

use crate::added::{AddedTokens, Mode};
use crate::error::{Error, Result};
use crate::guard::{Guard, MARK};
use crate::limits;
use crate::pieces::Spelling;
use crate::stream::lossy;
use serde::Deserialize;
use std::collections::HashSet;
use tokenizers::{
    AddedToken, Encoding, Model, ModelWrapper, NormalizedString, OffsetReferential, OffsetType, PostProcessor,
    PreTokenizedString, PreTokenizer, Token,
};

/// Ids that a GGUF file asks to put around a text; a tokenizer.json has its post-processor instead.
#[derive(Default)]
pub struct Ends {
    pub first: Option<u32>,
    pub last: Option<u32>,
}

pub struct Tokenizer {
    library: tokenizers::Tokenizer,
    added: AddedTokens,
    guard: Guard,
    control: HashSet<u32>,
    unknown: Option<u32>,
    spelling: Spelling,
    ends: Ends,
    vocab_size: usize,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let unigram_unknown = check_model(json)?;
        let mut library = tokenizers::Tokenizer::from_bytes(json)
            .map_err(|e| Error::bad_file(format!("tokenizer.json cannot be read: {e}")))?;
        limits::check(&library)?;
        // A file may ask to cut or pad every text, or to drop merges at random: none of it is meant
        // for serving, and a cut would be silent.
        library.with_padding(None);
        library.with_truncation(None).map_err(|e| Error::bad_file(e.to_string()))?;
        if let ModelWrapper::BPE(bpe) = library.get_model() {
            if bpe.dropout.is_some() {
                let mut bpe = bpe.clone();
                bpe.dropout = None;
                library.with_model(bpe);
            }
        }
        let mut tokenizer = Self::around(library, Ends::default(), 0)?;
        tokenizer.unknown = tokenizer.unknown.or(unigram_unknown);
        Ok(tokenizer)
    }

    /// `least_size`: ids that the file names even when no token is left for them.
    pub fn around(library: tokenizers::Tokenizer, ends: Ends, least_size: usize) -> Result<Self> {
        let mut tokens: Vec<(u32, AddedToken)> = library.get_added_tokens_decoder().into_iter().collect();
        tokens.sort_by_key(|(id, _)| *id);
        let control: HashSet<u32> = tokens.iter().filter(|(_, t)| t.special).map(|(id, _)| *id).collect();
        let spellings: Vec<String> =
            tokens.iter().filter(|(_, t)| t.special).map(|(_, t)| t.content.clone()).collect();
        if let Some(token) = spellings.iter().find(|s| s.contains(MARK)) {
            return Err(Error::bad_file(format!("control token {token:?} holds the noncharacter U+FDD0")));
        }
        let highest = library.get_vocab(true).into_values().max();
        Ok(Tokenizer {
            added: AddedTokens::new(tokens, library.get_normalizer()).map_err(Error::bad_file)?,
            guard: Guard::new(spellings),
            unknown: unknown_token(library.get_model()).and_then(|token| library.token_to_id(&token)),
            control,
            spelling: Spelling::of(library.get_decoder()),
            vocab_size: highest.map_or(0, |id| id as usize + 1).max(least_size),
            ends,
            library,
        })
    }

    pub fn encode(&self, text: &str, mode: Mode, add_special: bool) -> Result<Vec<u32>> {
        let ids = self.encode_text(text, mode).map_err(|e| match e.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::bad_request(format!("the text cannot be tokenised: {other}")),
        })?;
        if add_special {
            self.with_ends(ids)
        } else {
            Ok(ids)
        }
    }

    fn encode_text(&self, text: &str, mode: Mode) -> tokenizers::Result<Vec<u32>> {
        let mut pieces = PreTokenizedString::from(text);
        pieces.split(|_, piece| Ok(self.added.split_raw(piece, mode)))?;
        pieces.split(|_, mut piece| {
            if let Some(normalizer) = self.library.get_normalizer() {
                limits::normalize(normalizer, &mut piece)?;
            }
            Ok(self.added.split_normalized(piece, mode))
        })?;
        if let Some(pre_tokenizer) = self.library.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces)?;
        }
        pieces.tokenize(|piece| self.tokenize_word(piece, mode))?;
        Ok(pieces
            .get_splits(OffsetReferential::Original, OffsetType::None)
            .into_iter()
            .flat_map(|(_, _, tokens)| tokens.iter().flatten().map(|token| token.id))
            .collect())
    }

    /// The model itself may know a control token as a word (odd merges do that): ordinary text that
    /// comes out as one is tokenised character by character.
    fn tokenize_word(&self, word: &NormalizedString, mode: Mode) -> tokenizers::Result<Vec<Token>> {
        let model = self.library.get_model();
        let tokens = model.tokenize(word.get())?;
        if mode == Mode::ParseSpecial || !tokens.iter().any(|t| self.is_smuggled(t.id)) {
            return Ok(tokens);
        }
        let mut apart = Vec::new();
        for c in word.get().chars() {
            apart.extend(model.tokenize(c.encode_utf8(&mut [0; 4]))?);
        }
        match apart.iter().find(|t| self.is_smuggled(t.id)) {
            Some(token) => Err(Box::new(Error::bad_request(format!(
                "the text cannot be written without the control token {:?}",
                token.value
            )))),
            None => Ok(apart),
        }
    }

    fn is_smuggled(&self, id: u32) -> bool {
        self.control.contains(&id) && self.unknown != Some(id)
    }

    fn with_ends(&self, ids: Vec<u32>) -> Result<Vec<u32>> {
        let ids = match self.library.get_post_processor() {
            Some(processor) => {
                let bare: Encoding = ids.into_iter().map(|id| (id, String::new(), (0, 0), None, 0)).collect();
                let done = processor.process(bare, None, true).map_err(|e| Error::internal(e.to_string()))?;
                done.get_ids().to_vec()
            }
            None => ids,
        };
        Ok(self.ends.first.into_iter().chain(ids).chain(self.ends.last).collect())
    }

    pub fn decode(&self, ids: &[i32], skip_special: bool) -> Result<String> {
        if matches!(self.spelling, Spelling::Whole) {
            return self.decode_whole(ids, skip_special);
        }
        let mut bytes = Vec::new();
        for &id in ids {
            if !(skip_special && self.is_special(id)) {
                self.append_bytes(id, &mut bytes);
            }
        }
        let blanks = bytes.iter().take(self.spelling.strip_start()).take_while(|&&b| b == b' ').count();
        Ok(lossy(&bytes[blanks..]))
    }

    /// Through the library, for decoders that look at more than one token.
    pub fn decode_whole(&self, ids: &[i32], skip_special: bool) -> Result<String> {
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.library.decode(&ids, skip_special).map_err(|e| Error::internal(e.to_string()))
    }

    pub fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// Adds the bytes that `id` stands for; nothing for an id that is no token.
    pub fn append_bytes(&self, id: i32, out: &mut Vec<u8>) {
        let Ok(id) = u32::try_from(id) else { return };
        if let Some(content) = self.library.get_added_vocabulary().simple_id_to_token(id) {
            out.extend(content.as_bytes());
        } else if let Some(token) = self.library.get_model().id_to_token(id) {
            out.extend(self.spelling.bytes(&token));
        }
    }

    pub fn token(&self, id: i32) -> Option<String> {
        self.library.id_to_token(u32::try_from(id).ok()?)
    }

    pub fn id_of(&self, token: &str) -> Option<i32> {
        i32::try_from(self.library.token_to_id(token)?).ok()
    }

    pub fn is_special(&self, id: i32) -> bool {
        u32::try_from(id).is_ok_and(|id| self.control.contains(&id))
    }

    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    pub fn guard(&self, text: &str) -> String {
        self.guard.apply(text)
    }
}

fn unknown_token(model: &ModelWrapper) -> Option<String> {
    match model {
        ModelWrapper::BPE(bpe) => bpe.unk_token.clone(),
        ModelWrapper::WordPiece(model) => Some(model.unk_token.clone()),
        ModelWrapper::WordLevel(model) => Some(model.unk_token.clone()),
        ModelWrapper::Unigram(_) => None, // private there; from_json reads it from the file
    }
}

/// Refuses a model type that the library does not know (its own message names every type but that
/// one); returns the id of a Unigram model's unknown token.
fn check_model(json: &[u8]) -> Result<Option<u32>> {
    #[derive(Deserialize)]
    struct File {
        model: Option<ModelHead>,
    }
    #[derive(Deserialize)]
    struct ModelHead {
        r#type: Option<String>,
        unk_id: Option<u32>,
    }
    let file: File = serde_json::from_slice(json)
        .map_err(|e| Error::bad_file(format!("tokenizer.json is not valid JSON of a tokenizer: {e}")))?;
    let Some(model) = file.model else {
        return Err(Error::bad_file("tokenizer.json has no \"model\""));
    };
    match model.r#type.as_deref() {
        None | Some("BPE" | "Unigram" | "WordPiece" | "WordLevel") => Ok(model.unk_id),
        Some(other) => Err(Error::bad_file(format!("tokenizer.json has the unknown model type {other:?}"))),
    }
}
