//! A tokenizer from the metadata of a GGUF file.

use crate::error::{Error, Result};
use crate::pre_types;
use crate::tokenizer::{Ends, Tokenizer};
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{Merges, Vocab, BPE};
use tokenizers::normalizers::{Prepend, Replace, Sequence as NormalizerSequence, NFC};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizerSequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, DecoderWrapper, NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

/// What the file says, as the C header hands it over; negative ids are absent.
pub struct GgufVocabulary<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub types: &'a [i32],
    pub scores: &'a [f32],
    pub merges: Vec<&'a str>,
    pub bos: i32,
    pub eos: i32,
    pub unknown: i32,
    pub add_bos: bool,
    pub add_eos: bool,
    pub add_space_prefix: bool,
}

// tokenizer.ggml.token_type
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// SentencePiece's blank.
const BLANK: &str = "▁";

pub fn build(file: &GgufVocabulary) -> Result<Tokenizer> {
    check(file)?;
    let mut library = match file.model {
        "gpt2" => byte_level(file)?,
        "llama" => sentence_piece(file)?,
        other => {
            return Err(Error::bad_file(format!(
                "tokenizer.ggml.model {other:?} is not supported; known are \"gpt2\" and \"llama\""
            )))
        }
    };
    library.add_tokens(&added_tokens(file));
    Tokenizer::around(library, ends(file)?, file.tokens.len())
}

fn check(file: &GgufVocabulary) -> Result<()> {
    let count = file.tokens.len();
    if count == 0 {
        return Err(Error::bad_file("the file has no tokens"));
    }
    for (name, length) in [("token_type", file.types.len()), ("scores", file.scores.len())] {
        if length != 0 && length != count {
            return Err(Error::bad_file(format!("{count} tokens but {length} entries in tokenizer.ggml.{name}")));
        }
    }
    if file.scores.iter().any(|score| score.is_nan()) {
        return Err(Error::bad_file("tokenizer.ggml.scores holds a NaN"));
    }
    for (name, id) in [("bos", file.bos), ("eos", file.eos), ("unknown", file.unknown)] {
        if id >= 0 && id as usize >= count {
            return Err(Error::bad_file(format!("tokenizer.ggml.{name}_token_id {id} but only {count} tokens")));
        }
    }
    Ok(())
}

fn kind(file: &GgufVocabulary, id: usize) -> i32 {
    file.types.get(id).copied().unwrap_or(1)
}

fn vocabulary(file: &GgufVocabulary) -> Vocab {
    // Backwards, so that the first of equal tokens wins.
    (0..file.tokens.len()).rev().map(|id| (file.tokens[id].to_owned(), id as u32)).collect()
}

fn added_tokens(file: &GgufVocabulary) -> Vec<AddedToken> {
    let of_kind = |id: usize| matches!(kind(file, id), CONTROL | USER_DEFINED) || id as i32 == file.unknown;
    (0..file.tokens.len())
        .filter(|&id| of_kind(id) && !file.tokens[id].is_empty())
        .map(|id| AddedToken::from(file.tokens[id], kind(file, id) != USER_DEFINED).normalized(false))
        .collect()
}

fn ends(file: &GgufVocabulary) -> Result<Ends> {
    let end = |wanted: bool, id: i32, name: &str| match (wanted, u32::try_from(id)) {
        (false, _) => Ok(None),
        (true, Ok(id)) => Ok(Some(id)),
        (true, Err(_)) => {
            Err(Error::bad_file(format!("tokenizer.ggml.add_{name}_token is true but there is no {name} token")))
        }
    };
    Ok(Ends { first: end(file.add_bos, file.bos, "bos")?, last: end(file.add_eos, file.eos, "eos")? })
}

fn bad(e: impl std::fmt::Display) -> Error {
    Error::bad_file(format!("the file's vocabulary does not make a tokenizer: {e}"))
}

fn byte_level(file: &GgufVocabulary) -> Result<tokenizers::Tokenizer> {
    let pre = pre_types::find(file.pre).ok_or_else(|| {
        Error::bad_file(format!(
            "tokenizer.ggml.pre {:?} is not supported; known are {}",
            file.pre,
            pre_types::names()
        ))
    })?;
    let mut merges = Merges::with_capacity(file.merges.len());
    for merge in &file.merges {
        let (left, right) = merge.split_once(' ').ok_or_else(|| bad(format!("merge {merge:?} is not a pair")))?;
        merges.push((left.to_owned(), right.to_owned()));
    }
    let model = BPE::builder()
        .vocab_and_merges(vocabulary(file), merges)
        .ignore_merges(pre.ignore_merges)
        .build()
        .map_err(bad)?;
    let mut words: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in pre.patterns {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        words.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(bad)?.into());
    }
    words.push(ByteLevel::new(false, false, false).into());
    let mut library = tokenizers::Tokenizer::new(model);
    library.with_pre_tokenizer(Some(PreTokenizerSequence::new(words)));
    library.with_decoder(Some(ByteLevel::default()));
    if pre.compose {
        library.with_normalizer(Some(NFC));
    }
    Ok(library)
}

fn sentence_piece(file: &GgufVocabulary) -> Result<tokenizers::Tokenizer> {
    if file.scores.len() != file.tokens.len() {
        return Err(Error::bad_file("a \"llama\" vocabulary needs tokenizer.ggml.scores"));
    }
    let bytes = (0..file.tokens.len()).any(|id| kind(file, id) == BYTE);
    let mut model = BPE::builder()
        .vocab_and_merges(vocabulary(file), merges_of_scores(file))
        .byte_fallback(bytes)
        .fuse_unk(true);
    if let Ok(unknown) = usize::try_from(file.unknown) {
        model = model.unk_token(file.tokens[unknown].to_owned());
    }
    let replace = |from: &str, to: &str| Replace::new(from, to).map_err(bad);
    let mut normal: Vec<NormalizerWrapper> = Vec::new();
    if file.add_space_prefix {
        normal.push(Prepend::new(BLANK.to_owned()).into());
    }
    normal.push(replace(" ", BLANK)?.into());
    let mut steps: Vec<DecoderWrapper> =
        vec![replace(BLANK, " ")?.into(), ByteFallback::default().into(), Fuse::default().into()];
    if file.add_space_prefix {
        steps.push(Strip::new(' ', 1, 0).into());
    }
    let mut library = tokenizers::Tokenizer::new(model.build().map_err(bad)?);
    library.with_normalizer(Some(NormalizerSequence::new(normal)));
    library.with_decoder(Some(DecoderSequence::new(steps)));
    Ok(library)
}

/// SentencePiece joins the neighbours whose piece has the best score; BPE wants that as a ranked list
/// of pairs. Control tokens, the unknown token and bytes are never made from text.
fn merges_of_scores(file: &GgufVocabulary) -> Merges {
    let is_text = |id: usize| !matches!(kind(file, id), UNKNOWN | CONTROL | BYTE);
    let text: std::collections::HashMap<&str, usize> =
        (0..file.tokens.len()).rev().filter(|&id| is_text(id)).map(|id| (file.tokens[id], id)).collect();
    let mut ranked: Vec<(f32, &str, &str)> = Vec::new();
    for (id, piece) in file.tokens.iter().enumerate().filter(|(id, _)| is_text(*id)) {
        let mut pairs: Vec<(usize, usize, &str, &str)> = piece
            .char_indices()
            .skip(1)
            .map(|(at, _)| piece.split_at(at))
            .filter_map(|(left, right)| Some((*text.get(left)?, *text.get(right)?, left, right)))
            .collect();
        pairs.sort_unstable();
        ranked.extend(pairs.into_iter().map(|(_, _, left, right)| (file.scores[id], left, right)));
    }
    // Stable: among equals the longer left part, then the longer right part, then the file's order.
    let length = |s: &str| s.chars().count();
    ranked.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then(length(b.1).cmp(&length(a.1))).then(length(b.2).cmp(&length(a.2)))
    });
    ranked.into_iter().map(|(_, left, right)| (left.to_owned(), right.to_owned())).collect()
}
