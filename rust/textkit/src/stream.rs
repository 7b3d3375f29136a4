//! Tokens to text as they come: whole characters only, and the pieces joined are the whole decode.

use crate::error::Result;
use crate::pieces::Spelling;
use crate::tokenizer::Tokenizer;
use std::sync::Arc;

pub struct StreamDecoder {
    tokenizer: Arc<Tokenizer>,
    skip_special: bool,
    /// Bytes of a character that is not finished.
    pending: Vec<u8>,
    /// Leading blanks that the decoder still takes away.
    blanks_to_strip: usize,
    /// Only for decoders that see the whole sequence.
    ids: Vec<i32>,
    emitted: String,
}

impl StreamDecoder {
    pub fn new(tokenizer: Arc<Tokenizer>, skip_special: bool) -> Self {
        let blanks_to_strip = tokenizer.spelling().strip_start();
        StreamDecoder {
            tokenizer,
            skip_special,
            pending: Vec::new(),
            blanks_to_strip,
            ids: Vec::new(),
            emitted: String::new(),
        }
    }

    pub fn push(&mut self, id: i32) -> Result<String> {
        if matches!(self.tokenizer.spelling(), Spelling::Whole) {
            self.ids.push(id);
            return self.advance(false);
        }
        if !(self.skip_special && self.tokenizer.is_special(id)) {
            self.tokenizer.append_bytes(id, &mut self.pending);
        }
        self.strip_blanks();
        Ok(take_whole_characters(&mut self.pending))
    }

    pub fn flush(&mut self) -> Result<String> {
        if matches!(self.tokenizer.spelling(), Spelling::Whole) {
            return self.advance(true);
        }
        Ok(lossy(&std::mem::take(&mut self.pending)))
    }

    fn strip_blanks(&mut self) {
        while self.blanks_to_strip > 0 && !self.pending.is_empty() {
            if self.pending[0] == b' ' {
                self.pending.remove(0);
                self.blanks_to_strip -= 1;
            } else {
                self.blanks_to_strip = 0;
            }
        }
    }

    /// Decodes all tokens again and gives out what is new: quadratic, but such decoders (WordPiece,
    /// CTC) belong to models that do not generate.
    fn advance(&mut self, last: bool) -> Result<String> {
        let text = self.tokenizer.decode_whole(&self.ids, self.skip_special)?;
        let settled = last || !text.ends_with('\u{FFFD}');
        match text.strip_prefix(self.emitted.as_str()) {
            Some(rest) if settled => {
                let rest = rest.to_owned();
                self.emitted = text;
                Ok(rest)
            }
            _ => Ok(String::new()),
        }
    }
}

/// Decodes bytes as UTF-8; each maximal broken part becomes one U+FFFD.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Takes what is certain from `pending` and leaves the beginning of a character that may go on.
fn take_whole_characters(pending: &mut Vec<u8>) -> String {
    let kept = unfinished_bytes(pending);
    let rest = pending.split_off(pending.len() - kept);
    let whole = std::mem::replace(pending, rest);
    match String::from_utf8(whole) {
        Ok(text) => text,
        Err(e) => lossy(e.as_bytes()),
    }
}

/// How many bytes at the end are the valid beginning of a character.
fn unfinished_bytes(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(4)..];
    (1..=tail.len().min(3))
        .find(|&n| {
            let end = &tail[tail.len() - n..];
            let starts_here = end[0] >= 0xC0;
            starts_here && matches!(std::str::from_utf8(end), Err(e) if e.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_text() {
        let inputs: [&[u8]; 6] = [
            "añ日🦉".as_bytes(),
            b"a\xF0\x9F\xA6b",
            b"\xFF\xC3",
            b"\xE2\x82\xE2\x82\xAC",
            b"\xED\xA0\x80x",
            b"\x80\x80\xC3\xA9",
        ];
        for bytes in inputs {
            let mut pending = Vec::new();
            let mut joined = String::new();
            for &b in bytes {
                pending.push(b);
                joined += &take_whole_characters(&mut pending);
            }
            joined += &lossy(&pending);
            assert_eq!(joined, lossy(bytes), "{bytes:?}");
        }
    }
}
