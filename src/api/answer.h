#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer_parts.h"
#include "api/json.h"
#include "api/reasoning.h"
#include "base/errors.h"
#include "core/output.h"

namespace bodega::api {

// The bytes that a token stands for (text::Tokenizer::token_bytes), for the logprobs objects.
using TokenBytes = std::function<std::string(core::TokenId)>;

// A prompt that is printed before its completion.
struct Echo {
  std::string text;
  std::vector<core::TokenId> tokens;
};

// What an answer says of itself in every object, and how it is to be written.
struct AnswerInfo {
  std::string id;
  std::string model;
  std::string fingerprint;
  std::int64_t created = 0;  // Unix seconds
  int prompts = 1;           // chat: one
  int n = 1;                 // choices a prompt
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  Reasoning reasoning = Reasoning::kNone;
  MakeToolParser make_tool_parser;
  bool parallel_calls = true;
  bool logprobs = false;
  bool token_ids = false;                 // return_token_ids: choices carry the ids of their tokens
  std::vector<std::string> stop_strings;  // to tell their end of an answer from the model's own
  std::vector<std::string> warnings;
  std::vector<Echo> echo;  // completions: one a prompt, or none
  bool echo_only = false;  // max_tokens 0: what was sampled is not shown
  TokenBytes token_bytes;
};

// Turns the outputs of the engine requests of one answer (one a prompt) into bytes for the client.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // What to send now: for a stream the events of this step, last of all `data: [DONE]`; for a whole
  // answer "" until it is complete, then the body.
  virtual std::string add(int prompt, const core::RequestOutput& output) = 0;

  // What a stream that has begun ends with when it fails.
  virtual std::string error_event(const Error& error) const;

  // Every choice of every prompt has ended.
  virtual bool complete() const = 0;
};

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerInfo info);
std::unique_ptr<AnswerWriter> make_completion_writer(AnswerInfo info);
std::unique_ptr<AnswerWriter> make_anthropic_writer(AnswerInfo info);
// `echoed`: members of the request that the response repeats.
std::unique_ptr<AnswerWriter> make_responses_writer(AnswerInfo info, json::object echoed);

// The error that an output ends with, if it does.
std::optional<Error> failure_of(const core::RequestOutput& output);

// One server-sent event.
std::string event_text(std::string_view payload);

std::string new_answer_id(std::string_view prefix);  // "chatcmpl-4f1c..."

}  // namespace bodega::api
