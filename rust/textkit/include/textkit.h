// The C face of rust/textkit. Written by hand; scripts/check_textkit_header.py compares it with
// src/ffi.rs and fails when they drift apart.
//
// Strings go in as pointer and length and need no final zero. What a function returns through `out`
// or `error` belongs to the caller: textkit_text_free and textkit_ids_free. A function that can
// fail returns a status; unless that is 0, `error` holds a sentence and `out` is untouched. Handles
// may be used by several threads at once, except textkit_stream and textkit_matcher.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct textkit_tokenizer textkit_tokenizer;
typedef struct textkit_stream textkit_stream;
typedef struct textkit_template textkit_template;
typedef struct textkit_grammars textkit_grammars;
typedef struct textkit_grammar textkit_grammar;
typedef struct textkit_matcher textkit_matcher;

// 0 done, 1 bad model file, 2 bad request, 3 our own bug.
typedef int32_t textkit_status;

typedef struct textkit_view {
  const uint8_t* data;
  size_t size;
} textkit_view;

typedef struct textkit_text {
  uint8_t* data;
  size_t size;
} textkit_text;

typedef struct textkit_ids {
  int32_t* data;
  size_t size;
} textkit_ids;

// Metadata tokenizer.ggml.*; negative ids are absent. `types` and `scores` have token_count entries
// or none; `scores` only for model "llama", `merges` only for "gpt2".
typedef struct textkit_gguf {
  textkit_view model;
  textkit_view pre;
  const textkit_view* tokens;
  size_t token_count;
  const int32_t* types;
  size_t type_count;
  const float* scores;
  size_t score_count;
  const textkit_view* merges;
  size_t merge_count;
  int32_t bos;
  int32_t eos;
  int32_t unknown;
  bool add_bos;
  bool add_eos;
  bool add_space_prefix;
} textkit_gguf;

textkit_status textkit_tokenizer_from_json(textkit_view json, textkit_tokenizer** out,
                                           textkit_text* error);
textkit_status textkit_tokenizer_from_gguf(const textkit_gguf* file, textkit_tokenizer** out,
                                           textkit_text* error);
void textkit_tokenizer_free(textkit_tokenizer* tokenizer);

// mode: 0 control tokens stay text, 1 they are parsed, 2 they are parsed where no guard mark breaks
// them and the marks are dropped.
textkit_status textkit_tokenizer_encode(const textkit_tokenizer* tokenizer, textkit_view text,
                                        int32_t mode, bool add_special, textkit_ids* out,
                                        textkit_text* error);
textkit_status textkit_tokenizer_decode(const textkit_tokenizer* tokenizer, const int32_t* ids,
                                        size_t count, bool skip_special, textkit_text* out,
                                        textkit_text* error);
// Breaks every control token in a message's text with marks; textkit_unguard takes them out again.
textkit_status textkit_tokenizer_guard(const textkit_tokenizer* tokenizer, textkit_view text,
                                       textkit_text* out, textkit_text* error);
textkit_status textkit_unguard(textkit_view text, textkit_text* out, textkit_text* error);
int32_t textkit_tokenizer_find(const textkit_tokenizer* tokenizer, textkit_view token);  // -1: none
// as_bytes: the bytes that the token stands for instead of its vocabulary form; empty for a hole.
textkit_text textkit_tokenizer_token(const textkit_tokenizer* tokenizer, int32_t id, bool as_bytes);
bool textkit_tokenizer_is_special(const textkit_tokenizer* tokenizer, int32_t id);
int32_t textkit_tokenizer_vocab_size(const textkit_tokenizer* tokenizer);

// The stream keeps its tokenizer alive.
textkit_stream* textkit_stream_new(const textkit_tokenizer* tokenizer, bool skip_special);
void textkit_stream_free(textkit_stream* stream);
textkit_status textkit_stream_push(textkit_stream* stream, int32_t id, textkit_text* out,
                                   textkit_text* error);
textkit_status textkit_stream_flush(textkit_stream* stream, textkit_text* out, textkit_text* error);

textkit_status textkit_template_new(textkit_view source, textkit_view bos_token,
                                    textkit_view eos_token, uint32_t max_render_ms,
                                    textkit_template** out, textkit_text* error);
void textkit_template_free(textkit_template* chat_template);
textkit_status textkit_template_render(const textkit_template* chat_template,
                                       textkit_view context_json, int64_t now_unix_s,
                                       int32_t utc_offset_s, textkit_text* out,
                                       textkit_text* error);
bool textkit_template_mentions(const textkit_template* chat_template, textkit_view word);

// Grammars of one tokenizer. `ends`: the ids that may end an answer.
textkit_status textkit_grammars_new(const textkit_tokenizer* tokenizer, const int32_t* ends,
                                    size_t end_count, textkit_grammars** out, textkit_text* error);
void textkit_grammars_free(textkit_grammars* grammars);
// kind: 0 JSON schema, 1 regular expression, 2 Lark. The error's first line is the path of the
// keyword that cannot be compiled, its second what is wrong there.
textkit_status textkit_grammar_compile(const textkit_grammars* grammars, int32_t kind,
                                       textkit_view text, textkit_grammar** out,
                                       textkit_text* error);
void textkit_grammar_free(textkit_grammar* grammar);
// One answer. thought: 0 the grammar binds from the first token, 1 the answer may begin with
// `opening`, 2 the prompt has written it; then the grammar binds after `closing`, which is written
// at the latest after `thought_tokens` tokens (negative: no bound). grammar: null leaves the rest
// free.
textkit_status textkit_matcher_new(const textkit_grammars* grammars, const textkit_grammar* grammar,
                                   int32_t thought, textkit_view opening, textkit_view closing,
                                   int32_t thought_tokens, textkit_matcher** out,
                                   textkit_text* error);
void textkit_matcher_free(textkit_matcher* matcher);
// kind: 0 any id may come next, 1 any but an end, 2 those whose bit is set: id % 32 of word id
// / 32. Only then are the words written.
textkit_status textkit_matcher_mask(textkit_matcher* matcher, uint32_t* words, size_t word_count,
                                    int32_t* kind, textkit_text* error);
textkit_status textkit_matcher_accept(textkit_matcher* matcher, int32_t id, bool* complete,
                                      textkit_text* error);

void textkit_text_free(textkit_text text);
void textkit_ids_free(textkit_ids ids);

#ifdef __cplusplus
}
#endif
