#include <utility>

#include "api/chat_request.h"
#include "api/logprobs.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"

// The routes that show what the model really sees.
namespace bodega::server {
namespace {

namespace json = boost::json;

void add_warnings(json::object& answer, const std::vector<std::string>& warnings) {
  if (warnings.empty()) return;
  answer["warnings"] = json::array(warnings.begin(), warnings.end());
}

json::array spell(const WorkerModel& model, const std::vector<core::TokenId>& tokens) {
  json::array texts;
  for (const core::TokenId id : tokens) {
    texts.push_back(json::value(api::token_text(model.token_bytes(id))));
  }
  return texts;
}

struct TokenizeRequest {
  std::vector<core::TokenId> tokens;
  bool spelt = false;
  std::vector<std::string> warnings;
};

// A raw text under `prompt` or `content`, as /v1/completions would read it; or the body of a chat.
TokenizeRequest read_tokenize(const WorkerState& state, const WorkerModel& model,
                              const std::string& body) {
  const api::ModelLimits limits = limits_of(state, model);
  const json::object object = api::parse_object(body);
  api::Fields fields(object);
  TokenizeRequest request;
  if (fields.find("messages") != nullptr) {
    json::object chat = object;
    request.spelt = fields.boolean("return_token_strs").value_or(false);
    chat.erase("return_token_strs");
    const api::ChatRequest parsed = api::parse_apply_template(api::to_text(chat), limits);
    request.tokens = chat_prompt(model, parsed).tokens;
    request.warnings = parsed.common.warnings;
    return request;
  }
  fields.string("model");  // the front has found this worker by it
  std::optional<std::string> text = fields.string("prompt");
  if (std::optional<std::string> content = fields.string("content"); !text)
    text = std::move(content);
  if (!text) api::refuse("prompt", "is missing: send prompt, content or messages");
  const bool add_special = fields.boolean("add_special_tokens").value_or(true);
  const bool parse_special = fields.boolean("parse_special").value_or(true);
  request.tokens = model.encode(*text, add_special, parse_special);
  request.spelt = fields.boolean("return_token_strs").value_or(false);
  api::note_unknown_fields(fields, limits, request.warnings);
  return request;
}

}  // namespace

void handle_tokenize(WorkerState& state, WorkerModel& model, const http::Request& request,
                     const ExchangePtr& exchange) {
  const TokenizeRequest read = read_tokenize(state, model, request.body);
  json::object answer{{"count", read.tokens.size()},
                      {"max_model_len", model.facts().context_length},
                      {"tokens", json::array(read.tokens.begin(), read.tokens.end())}};
  if (read.spelt) answer["token_strs"] = spell(model, read.tokens);
  add_warnings(answer, read.warnings);
  respond_json(*exchange, answer);
}

void handle_detokenize(WorkerState& state, WorkerModel& model, const http::Request& request,
                       const ExchangePtr& exchange) {
  const json::object object = api::parse_object(request.body);
  api::Fields fields(object);
  fields.string("model");  // the front has found this worker by it
  const json::array* tokens = fields.array("tokens");
  if (tokens == nullptr) api::refuse("tokens", "is missing: send an array of token ids");
  const std::vector<core::TokenId> ids =
      api::read_token_ids(*tokens, "tokens", model.facts().vocab_size);
  const bool skip_special = fields.boolean("skip_special_tokens").value_or(false);
  std::vector<std::string> warnings;
  api::note_unknown_fields(fields, limits_of(state, model), warnings);
  json::object answer{{"prompt", model.decode(ids, skip_special)}};
  answer["content"] = answer["prompt"];  // the name that llama.cpp's clients read
  add_warnings(answer, warnings);
  respond_json(*exchange, answer);
}

void handle_apply_template(WorkerState& state, WorkerModel& model, const http::Request& request,
                           const ExchangePtr& exchange) {
  const api::ChatRequest chat = api::parse_apply_template(request.body, limits_of(state, model));
  const std::vector<core::TokenId> tokens = chat_prompt(model, chat).tokens;
  json::object answer{{"prompt", chat_text(model, chat)},
                      {"tokens", json::array(tokens.begin(), tokens.end())},
                      {"count", tokens.size()}};
  add_warnings(answer, chat.common.warnings);
  respond_json(*exchange, answer);
}

}  // namespace bodega::server
