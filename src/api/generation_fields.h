#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/fields.h"
#include "api/structured_fields.h"
#include "core/request.h"

namespace bodega::api {

// What a request may ask of the model that serves it.
struct ModelLimits {
  int context_length = 0;  // tokens, prompt and answer
  int vocab_size = 0;
  bool strict = false;  // an unknown field is an error instead of a warning
};

// What chat and completions have in common, checked.
struct GenerationFields {
  std::optional<std::string> model;
  core::SamplingParams sampling;
  core::StopParams stop;
  int n = 1;
  core::Priority priority = core::Priority::kNormal;
  std::optional<int> max_tokens;  // the newer name has already won
  std::optional<int> max_completion_tokens;
  std::optional<int> max_reasoning_tokens;
  std::optional<std::uint64_t> seed;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  std::optional<BoundAnswer> bound;  // what the answer keeps to
  std::string script;  // metadata.script, which means something to a scripted model only
  std::vector<std::string> warnings;
};

// One row of the table of plain fields: it drives parsing, the error text, and the tests.
struct PlainField {
  using Target =
      std::variant<float core::SamplingParams::*, int core::SamplingParams::*,
                   int core::StopParams::*, bool core::StopParams::*, int GenerationFields::*,
                   bool GenerationFields::*, std::optional<int> GenerationFields::*>;
  std::string_view name;
  Target target;
  double least = 0;
  double most = 0;
  bool above_least = false;  // the lower bound itself is outside

  bool is_bool() const;
  bool is_integer() const;
  bool is_budget() const;           // max_tokens under either name
  std::string requirement() const;  // "a number from 0 to 2"
};

std::span<const PlainField> plain_fields();

// Reads the table, then seed, stop, stop_token_ids, logit_bias, priority, stream_options and what
// binds the answer.
// `least_tokens` is the lowest max_tokens that the route takes.
GenerationFields read_generation(Fields& fields, const ModelLimits& limits, int least_tokens = 1);

// Answers 400 by name for what later work will honour, and takes what has no effect here.
void refuse_later_fields(Fields& fields);

// To be called once every field that is known has been read: the others become warnings (an error
// under `strict`).
void note_unknown_fields(const Fields& fields, const ModelLimits& limits,
                         std::vector<std::string>& warnings);

// The answer's budget: what was asked, at most the room left. Throws kContextLengthExceeded when
// the prompt leaves no room for one token.
int resolve_max_tokens(std::optional<int> asked, int prompt_tokens, int context_length);

// An array of token ids, each inside the vocabulary.
std::vector<core::TokenId> read_token_ids(const json::array& array, const std::string& path,
                                          int vocab_size);

}  // namespace bodega::api
