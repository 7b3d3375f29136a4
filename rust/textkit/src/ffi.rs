//! The C boundary: include/textkit.h says what each function promises. Nothing unwinds across it.

#![allow(non_camel_case_types)]

use crate::added::Mode;
use crate::error::{Error, Kind, Result};
use crate::gguf::{self, GgufVocabulary};
use crate::grammar::{self, Allowed, Grammar, Grammars, Lead, Matcher, Thought};
use crate::guard;
use crate::stream::StreamDecoder;
use crate::template::{ChatTemplate, Clock};
use crate::tokenizer::Tokenizer;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Once};
use std::time::Duration;

pub struct textkit_tokenizer(Arc<Tokenizer>);
pub struct textkit_stream(StreamDecoder);
pub struct textkit_template(ChatTemplate);
pub struct textkit_grammars(Grammars);
pub struct textkit_grammar(Grammar);
pub struct textkit_matcher(Matcher);

pub type textkit_status = i32;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct textkit_view {
    pub data: *const u8,
    pub size: usize,
}

#[repr(C)]
pub struct textkit_text {
    pub data: *mut u8,
    pub size: usize,
}

#[repr(C)]
pub struct textkit_ids {
    pub data: *mut i32,
    pub size: usize,
}

#[repr(C)]
pub struct textkit_gguf {
    pub model: textkit_view,
    pub pre: textkit_view,
    pub tokens: *const textkit_view,
    pub token_count: usize,
    pub types: *const i32,
    pub type_count: usize,
    pub scores: *const f32,
    pub score_count: usize,
    pub merges: *const textkit_view,
    pub merge_count: usize,
    pub bos: i32,
    pub eos: i32,
    pub unknown: i32,
    pub add_bos: bool,
    pub add_eos: bool,
    pub add_space_prefix: bool,
}

/// C passes a null pointer for an empty array.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

impl textkit_view {
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        slice(self.data, self.size)
    }

    unsafe fn text<'a>(self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|_| Error::bad_request("the text is not valid UTF-8"))
    }

    unsafe fn model_text<'a>(self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|_| Error::bad_file(format!("{what} is not valid UTF-8")))
    }
}

impl From<Vec<u8>> for textkit_text {
    fn from(bytes: Vec<u8>) -> Self {
        let size = bytes.len();
        textkit_text { data: Box::into_raw(bytes.into_boxed_slice()).cast(), size }
    }
}

impl From<String> for textkit_text {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<i32>> for textkit_ids {
    fn from(ids: Vec<i32>) -> Self {
        let size = ids.len();
        textkit_ids { data: Box::into_raw(ids.into_boxed_slice()).cast(), size }
    }
}

/// Runs `work`, writes its result to `out` or its error to `error`.
unsafe fn guarded<T>(out: *mut T, error: *mut textkit_text, work: impl FnOnce() -> Result<T>) -> textkit_status {
    // The panic's message goes to the caller, not to standard error.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error { kind: Kind::Internal, message: format!("the text library panicked: {message}") })
    });
    match result {
        Ok(value) => {
            out.write(value);
            0
        }
        Err(failure) => {
            error.write(failure.message.into());
            failure.kind as textkit_status
        }
    }
}

fn handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

unsafe fn free<T: ?Sized>(handle: *mut T) {
    if !handle.is_null() {
        drop(Box::from_raw(handle));
    }
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_from_json(
    json: textkit_view,
    out: *mut *mut textkit_tokenizer,
    error: *mut textkit_text,
) -> textkit_status {
    // A panic while loading is the file's fault: the library indexes by what the file says.
    let status =
        guarded(out, error, || Ok(handle(textkit_tokenizer(Arc::new(Tokenizer::from_json(json.bytes())?)))));
    if status == Kind::Internal as textkit_status {
        Kind::BadFile as textkit_status
    } else {
        status
    }
}

unsafe fn gguf_vocabulary<'a>(file: &textkit_gguf) -> Result<GgufVocabulary<'a>> {
    let texts = |data, count, what: &str| -> Result<Vec<&'a str>> {
        let views: &[textkit_view] = slice(data, count);
        views.iter().enumerate().map(|(i, view)| view.model_text(&format!("{what} {i}"))).collect()
    };
    Ok(GgufVocabulary {
        model: file.model.model_text("tokenizer.ggml.model")?,
        pre: file.pre.model_text("tokenizer.ggml.pre")?,
        tokens: texts(file.tokens, file.token_count, "token")?,
        types: slice(file.types, file.type_count),
        scores: slice(file.scores, file.score_count),
        merges: texts(file.merges, file.merge_count, "merge")?,
        bos: file.bos,
        eos: file.eos,
        unknown: file.unknown,
        add_bos: file.add_bos,
        add_eos: file.add_eos,
        add_space_prefix: file.add_space_prefix,
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_from_gguf(
    file: *const textkit_gguf,
    out: *mut *mut textkit_tokenizer,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok(handle(textkit_tokenizer(Arc::new(gguf::build(&gguf_vocabulary(&*file)?)?)))))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_free(tokenizer: *mut textkit_tokenizer) {
    free(tokenizer);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_encode(
    tokenizer: *const textkit_tokenizer,
    text: textkit_view,
    mode: i32,
    add_special: bool,
    out: *mut textkit_ids,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || {
        let mode = match mode {
            0 => Mode::Ordinary,
            1 => Mode::ParseSpecial,
            2 => Mode::Rendered,
            _ => return Err(Error::internal("unknown encoding mode")),
        };
        let ids = (*tokenizer).0.encode(text.text()?, mode, add_special)?;
        Ok(ids.into_iter().map(|id| id as i32).collect::<Vec<i32>>().into())
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_decode(
    tokenizer: *const textkit_tokenizer,
    ids: *const i32,
    count: usize,
    skip_special: bool,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok((*tokenizer).0.decode(slice(ids, count), skip_special)?.into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_guard(
    tokenizer: *const textkit_tokenizer,
    text: textkit_view,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok((*tokenizer).0.guard(text.text()?).into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_unguard(
    text: textkit_view,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok(guard::remove_marks(text.text()?).into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_find(tokenizer: *const textkit_tokenizer, token: textkit_view) -> i32 {
    token.text().ok().and_then(|token| (*tokenizer).0.id_of(token)).unwrap_or(-1)
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_token(
    tokenizer: *const textkit_tokenizer,
    id: i32,
    as_bytes: bool,
) -> textkit_text {
    let tokenizer = &(*tokenizer).0;
    if !as_bytes {
        return tokenizer.token(id).unwrap_or_default().into();
    }
    let mut bytes = Vec::new();
    tokenizer.append_bytes(id, &mut bytes);
    bytes.into()
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_is_special(tokenizer: *const textkit_tokenizer, id: i32) -> bool {
    (*tokenizer).0.is_special(id)
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_tokenizer_vocab_size(tokenizer: *const textkit_tokenizer) -> i32 {
    i32::try_from((*tokenizer).0.vocab_size()).unwrap_or(i32::MAX)
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_stream_new(
    tokenizer: *const textkit_tokenizer,
    skip_special: bool,
) -> *mut textkit_stream {
    handle(textkit_stream(StreamDecoder::new((*tokenizer).0.clone(), skip_special)))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_stream_free(stream: *mut textkit_stream) {
    free(stream);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_stream_push(
    stream: *mut textkit_stream,
    id: i32,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok((*stream).0.push(id)?.into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_stream_flush(
    stream: *mut textkit_stream,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok((*stream).0.flush()?.into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_template_new(
    source: textkit_view,
    bos_token: textkit_view,
    eos_token: textkit_view,
    max_render_ms: u32,
    out: *mut *mut textkit_template,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || {
        let source = source.model_text("the chat template")?;
        let (bos_token, eos_token) = (bos_token.model_text("bos_token")?, eos_token.model_text("eos_token")?);
        let max_time = Duration::from_millis(max_render_ms.into());
        let template = ChatTemplate::new(source, bos_token, eos_token, max_time)?;
        Ok(handle(textkit_template(template)))
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_template_free(chat_template: *mut textkit_template) {
    free(chat_template);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_template_render(
    chat_template: *const textkit_template,
    context_json: textkit_view,
    now_unix_s: i64,
    utc_offset_s: i32,
    out: *mut textkit_text,
    error: *mut textkit_text,
) -> textkit_status {
    let clock = Clock { unix_s: now_unix_s, utc_offset_s };
    guarded(out, error, || Ok((*chat_template).0.render(context_json.text()?, clock)?.into()))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_template_mentions(
    chat_template: *const textkit_template,
    word: textkit_view,
) -> bool {
    word.text().is_ok_and(|word| (*chat_template).0.mentions(word))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_grammars_new(
    tokenizer: *const textkit_tokenizer,
    ends: *const i32,
    end_count: usize,
    out: *mut *mut textkit_grammars,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || Ok(handle(textkit_grammars(Grammars::new(&(*tokenizer).0, slice(ends, end_count))?))))
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_grammars_free(grammars: *mut textkit_grammars) {
    free(grammars);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_grammar_compile(
    grammars: *const textkit_grammars,
    kind: i32,
    text: textkit_view,
    out: *mut *mut textkit_grammar,
    error: *mut textkit_text,
) -> textkit_status {
    let status = guarded(out, error, || {
        let kind = match kind {
            0 => grammar::Kind::JsonSchema,
            1 => grammar::Kind::Regex,
            2 => grammar::Kind::Lark,
            _ => return Err(Error::internal("unknown kind of grammar")),
        };
        Ok(handle(textkit_grammar((*grammars).0.compile(kind, text.text()?)?)))
    });
    // A panic while compiling is the grammar's fault.
    if status == Kind::Internal as textkit_status {
        Kind::BadRequest as textkit_status
    } else {
        status
    }
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_grammar_free(grammar: *mut textkit_grammar) {
    free(grammar);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_matcher_new(
    grammars: *const textkit_grammars,
    grammar: *const textkit_grammar,
    thought: i32,
    opening: textkit_view,
    closing: textkit_view,
    thought_tokens: i32,
    out: *mut *mut textkit_matcher,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(out, error, || {
        let thought = match thought {
            0 => Thought::None,
            1 => Thought::MayOpen,
            2 => Thought::Open,
            _ => return Err(Error::internal("unknown state of thought")),
        };
        let lead = Lead::new(thought, opening.text()?, closing.text()?, u32::try_from(thought_tokens).ok());
        Ok(handle(textkit_matcher(Matcher::new(&(*grammars).0, grammar.as_ref().map(|g| &g.0), lead))))
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_matcher_free(matcher: *mut textkit_matcher) {
    free(matcher);
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_matcher_mask(
    matcher: *mut textkit_matcher,
    words: *mut u32,
    word_count: usize,
    kind: *mut i32,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(kind, error, || {
        let mask = match (*matcher).0.mask()? {
            Allowed::Any => return Ok(0),
            Allowed::AnyButEnd => return Ok(1),
            Allowed::Only(mask) => mask,
        };
        let from = mask.as_slice();
        let shared = word_count.min(from.len());
        let to = std::slice::from_raw_parts_mut(words, word_count);
        to[..shared].copy_from_slice(&from[..shared]);
        to[shared..].fill(0);
        Ok(2)
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_matcher_accept(
    matcher: *mut textkit_matcher,
    id: i32,
    complete: *mut bool,
    error: *mut textkit_text,
) -> textkit_status {
    guarded(complete, error, || {
        let id = u32::try_from(id).map_err(|_| Error::internal("a negative token id"))?;
        (*matcher).0.accept(id)
    })
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_text_free(text: textkit_text) {
    free(std::ptr::slice_from_raw_parts_mut(text.data, text.size));
}

/// # Safety
/// See include/textkit.h.
#[no_mangle]
pub unsafe extern "C" fn textkit_ids_free(ids: textkit_ids) {
    free(std::ptr::slice_from_raw_parts_mut(ids.data, ids.size));
}
