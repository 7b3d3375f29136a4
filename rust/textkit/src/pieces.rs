//! What one token stands for, in bytes. Decoders that map every token to bytes of its own (byte-level,
//! SentencePiece) are understood here; the rest (WordPiece and kin) go through the library as a whole.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;
use tokenizers::DecoderWrapper;

pub enum Spelling {
    ByteLevel,
    SentencePiece { replace: Vec<(String, String)>, byte_fallback: bool, strip_start: usize },
    Whole,
}

impl Spelling {
    pub fn of(decoder: Option<&DecoderWrapper>) -> Self {
        let steps = match decoder.map(serde_json::to_value) {
            Some(Ok(value)) => flatten(&value),
            _ => return Spelling::Whole,
        };
        let byte_level = |step: &Value| step["type"] == "ByteLevel";
        if steps.iter().any(byte_level) && steps.iter().all(|s| byte_level(s) || harmless_beside_bytes(s)) {
            return Spelling::ByteLevel;
        }
        sentence_piece(&steps).unwrap_or(Spelling::Whole)
    }

    /// Blanks that the decoder takes from the front of the whole text.
    pub fn strip_start(&self) -> usize {
        match self {
            Spelling::SentencePiece { strip_start, .. } => *strip_start,
            _ => 0,
        }
    }

    /// Bytes of a token of the model's own vocabulary.
    pub fn bytes(&self, token: &str) -> Vec<u8> {
        match self {
            Spelling::ByteLevel => {
                let mapped: Option<Vec<u8>> = token.chars().map(|c| BYTE_OF_CHAR.get(&c).copied()).collect();
                mapped.unwrap_or_else(|| token.as_bytes().to_vec())
            }
            Spelling::SentencePiece { replace, byte_fallback, .. } => {
                if let Some(byte) = byte_fallback.then(|| fallback_byte(token)).flatten() {
                    return vec![byte];
                }
                let text = replace.iter().fold(token.to_owned(), |text, (from, to)| text.replace(from, to));
                text.into_bytes()
            }
            Spelling::Whole => token.as_bytes().to_vec(),
        }
    }
}

/// `<0x0A>` is the byte 10.
pub fn fallback_byte(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let two_digits = hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    two_digits.then(|| u8::from_str_radix(hex, 16).ok()).flatten()
}

fn flatten(decoder: &Value) -> Vec<Value> {
    match decoder["decoders"].as_array() {
        Some(steps) if decoder["type"] == "Sequence" => steps.iter().flat_map(flatten).collect(),
        _ => vec![decoder.clone()],
    }
}

fn harmless_beside_bytes(step: &Value) -> bool {
    step["type"] == "Fuse" || step["type"] == "ByteFallback"
}

/// Replace*, ByteFallback?, Fuse?, Strip? in this order, or a lone Metaspace.
fn sentence_piece(steps: &[Value]) -> Option<Spelling> {
    let mut replace = Vec::new();
    let mut byte_fallback = false;
    let mut fused = false;
    let mut strip_start = 0;
    for step in steps {
        match step["type"].as_str()? {
            "Metaspace" if steps.len() == 1 => {
                replace.push((step["replacement"].as_str()?.to_owned(), " ".to_owned()));
                strip_start = usize::from(step["prepend_scheme"] != "never");
            }
            "Replace" if !fused => {
                let pattern = step["pattern"]["String"].as_str()?;
                replace.push((pattern.to_owned(), step["content"].as_str()?.to_owned()));
            }
            "ByteFallback" if !fused => byte_fallback = true,
            "Fuse" => fused = true,
            "Strip" if fused && step["content"] == " " && step["stop"] == 0 => {
                strip_start += usize::try_from(step["start"].as_u64()?).ok()?;
            }
            _ => return None,
        }
    }
    Some(Spelling::SentencePiece { replace, byte_fallback, strip_start })
}

/// GPT-2's alphabet: printable bytes stand for themselves, the rest for characters from U+0100 on.
static BYTE_OF_CHAR: LazyLock<HashMap<char, u8>> = LazyLock::new(|| {
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let own = (0..=255u8).filter(printable).map(|b| (char::from(b), b));
    let shifted = (0..=255u8).filter(|b| !printable(b)).zip(0x100u32..);
    own.chain(shifted.filter_map(|(b, c)| Some((char::from_u32(c)?, b)))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_alphabet_is_a_bijection() {
        let mut bytes: Vec<u8> = BYTE_OF_CHAR.values().copied().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(BYTE_OF_CHAR[&'Ġ'], b' ');
        assert_eq!(BYTE_OF_CHAR[&'Ċ'], b'\n');
    }

    #[test]
    fn fallback_bytes() {
        assert_eq!(fallback_byte("<0xE2>"), Some(0xE2));
        assert_eq!(fallback_byte("<0x+1>"), None);
        assert_eq!(fallback_byte("<0x1>"), None);
    }
}
