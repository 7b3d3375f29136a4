//! What a tokenizer file may ask for: no step of it may grow a text without bound or take quadratic time.

use crate::error::{Error, Result};
use serde_json::Value;
use tokenizers::{ModelWrapper, NormalizedString, Normalizer, NormalizerWrapper, Tokenizer};

/// Replacements of real files have one or two characters.
const MAX_REPLACEMENT_BYTES: usize = 64;
/// Unicode's own longest expansion (U+FDFA under NFKC) is elevenfold.
const MAX_GROWTH: usize = 16;
/// WordPiece looks for the longest piece at every place of a word; files say 100.
const MAX_WORD_CHARS: usize = 256;

pub fn check(library: &Tokenizer) -> Result<()> {
    if let ModelWrapper::WordPiece(model) = library.get_model() {
        if model.max_input_chars_per_word > MAX_WORD_CHARS {
            return Err(Error::bad_file(format!(
                "tokenizer.json wants words of {} characters; at most {MAX_WORD_CHARS} are supported",
                model.max_input_chars_per_word
            )));
        }
    }
    let normalizer = library.get_normalizer().map(serde_json::to_value);
    let decoder = library.get_decoder().map(serde_json::to_value);
    normalizer.into_iter().chain(decoder).flatten().try_for_each(|step| check_step(&step))
}

fn check_step(step: &Value) -> Result<()> {
    for list in ["normalizers", "decoders"] {
        for inner in step[list].as_array().into_iter().flatten() {
            check_step(inner)?;
        }
    }
    for text in ["content", "prepend"] {
        if step[text].as_str().is_some_and(|text| text.len() > MAX_REPLACEMENT_BYTES) {
            return Err(Error::bad_file(format!(
                "tokenizer.json replaces text by more than {MAX_REPLACEMENT_BYTES} bytes"
            )));
        }
    }
    Ok(())
}

/// Normalizes step by step, so that a chain of them cannot multiply its growth.
pub fn normalize(normalizer: &NormalizerWrapper, text: &mut NormalizedString) -> tokenizers::Result<()> {
    if let NormalizerWrapper::Sequence(steps) = normalizer {
        return steps.as_ref().iter().try_for_each(|step| normalize(step, text));
    }
    normalizer.normalize(text)?;
    if text.get().len() > MAX_GROWTH * text.get_original().len() + MAX_REPLACEMENT_BYTES {
        return Err("the tokenizer's normalizer makes it far too long".into());
    }
    Ok(())
}
