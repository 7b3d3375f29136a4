#include "api/chat_request.h"

#include <array>

#include "base/errors.h"

namespace bodega::api {
namespace {

// Names of the context that are the server's own.
constexpr auto kReservedKwargs = std::to_array<std::string_view>(
    {"messages", "tools", "add_generation_prompt", "continue_final_message"});

void read_kwargs(Fields& fields, ChatRequest& into) {
  const json::object* kwargs = fields.object("chat_template_kwargs");
  if (kwargs == nullptr) return;
  for (const std::string_view name : kReservedKwargs) {
    if (kwargs->contains(name)) {
      refuse("chat_template_kwargs." + std::string(name), "has a field of its own in the body");
    }
  }
  into.template_kwargs = *kwargs;
}

void read_prompt_ends(Fields& fields, ChatRequest& into) {
  into.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  into.add_generation_prompt =
      fields.boolean("add_generation_prompt").value_or(!into.continue_final_message);
  if (into.continue_final_message && into.add_generation_prompt) {
    refuse("continue_final_message", "cannot be true together with add_generation_prompt");
  }
}

void read_prompt(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  const json::array* messages = fields.array("messages");
  if (messages == nullptr) refuse("messages", "is missing: send an array of messages");
  into.messages = read_messages(*messages, limits, into.common.warnings);
  read_kwargs(fields, into);
  into.reasoning_effort = fields.string("reasoning_effort");
  into.tools = read_tools(fields, limits, into.common.warnings);
  read_prompt_ends(fields, into);
}

void read_logprobs(Fields& fields, core::SamplingParams& into) {
  into.logprobs = fields.boolean("logprobs").value_or(false);
  const std::optional<std::int64_t> top = fields.integer("top_logprobs");
  if (!top) return;
  if (*top < 0 || *top > 20) refuse("top_logprobs", "must be an integer from 0 to 20");
  if (!into.logprobs) refuse("top_logprobs", "needs logprobs to be true");
  into.top_logprobs = static_cast<int>(*top);
}

}  // namespace

ChatRequest parse_chat(std::string_view body, const ModelLimits& limits) {
  const json::object object = parse_object(body);
  Fields fields(object);
  ChatRequest request;
  request.common = read_generation(fields, limits);
  read_prompt(fields, limits, request);
  read_logprobs(fields, request.common.sampling);
  refuse_later_fields(fields);
  note_unknown_fields(fields, limits, request.common.warnings);
  return request;
}

ChatRequest parse_apply_template(std::string_view body, const ModelLimits& limits) {
  const json::object object = parse_object(body);
  Fields fields(object);
  ChatRequest request;
  request.common.model = fields.string("model");
  read_prompt(fields, limits, request);
  refuse_later_fields(fields);
  note_unknown_fields(fields, limits, request.common.warnings);
  return request;
}

json::object template_context(const ChatRequest& request, json::array messages,
                              const Guard& guard) {
  json::object context;
  context["messages"] = std::move(messages);
  if (request.tools.callable()) {
    json::array tools = request.tools.listed;
    if (guard) guard_list(tools, guard);
    context["tools"] = std::move(tools);
  }
  context["add_generation_prompt"] = request.add_generation_prompt;
  if (request.reasoning_effort) context["reasoning_effort"] = *request.reasoning_effort;
  json::object kwargs = request.template_kwargs;
  if (guard) guard_values(kwargs, guard);  // a template may print them
  for (auto& member : kwargs) context[member.key()] = std::move(member.value());
  return context;
}

}  // namespace bodega::api
