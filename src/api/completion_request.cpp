#include "api/completion_request.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace bodega::api {
namespace {

constexpr std::size_t kMostPrompts = 128;

Prompt ids_prompt(const json::array& ids, const std::string& path, const ModelLimits& limits) {
  if (ids.empty()) refuse(path, "must not be empty");
  return read_token_ids(ids, path, limits.vocab_size);
}

Prompt element_prompt(const json::value& value, const std::string& path,
                      const ModelLimits& limits) {
  if (value.is_string()) return std::string(value.get_string());
  if (!value.is_array()) refuse(path, "must be a string or an array of token ids");
  return ids_prompt(value.get_array(), path, limits);
}

std::vector<Prompt> read_prompts(Fields& fields, const ModelLimits& limits) {
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr) refuse("prompt", "is missing");
  if (prompt->is_string()) return {std::string(prompt->get_string())};
  if (!prompt->is_array()) refuse("prompt", "must be a string, token ids, or an array of either");
  const json::array& list = prompt->get_array();
  if (list.empty()) refuse("prompt", "must not be empty");
  if (list[0].is_number()) return {ids_prompt(list, "prompt", limits)};
  if (list.size() > kMostPrompts)
    refuse("prompt", fmt::format("may hold at most {} prompts", kMostPrompts));
  std::vector<Prompt> prompts;
  prompts.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    prompts.push_back(element_prompt(list[i], element("prompt", i), limits));
  }
  return prompts;
}

void read_logprobs(Fields& fields, core::SamplingParams& into) {
  const std::optional<std::int64_t> count = fields.integer("logprobs");
  if (!count) return;
  if (*count < 0 || *count > 20) refuse("logprobs", "must be an integer from 0 to 20");
  into.logprobs = true;
  into.top_logprobs = static_cast<int>(*count);
}

// A raw prompt has no place for tools.
void refuse_tools(Fields& fields) {
  for (const char* name : {"tools", "tool_choice", "parallel_tool_calls"}) {
    const json::value* value = fields.find(name);
    if (value == nullptr || (value->is_array() && value->get_array().empty())) continue;
    if (value->is_string() && *value != "required") continue;
    refuse(fields.path(name), "belongs to /v1/chat/completions");
  }
}

}  // namespace

CompletionRequest parse_completion(std::string_view body, const ModelLimits& limits) {
  const json::object object = parse_object(body);
  Fields fields(object);
  CompletionRequest request;
  request.echo = fields.boolean("echo").value_or(false);
  request.common = read_generation(fields, limits, request.echo ? 0 : 1);
  request.prompts = read_prompts(fields, limits);
  read_logprobs(fields, request.common.sampling);
  refuse_tools(fields);
  refuse_later_fields(fields);
  note_unknown_fields(fields, limits, request.common.warnings);
  return request;
}

}  // namespace bodega::api
