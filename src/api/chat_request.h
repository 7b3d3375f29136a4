#pragma once

#include <optional>
#include <string_view>

#include "api/generation_fields.h"
#include "api/messages.h"
#include "api/tools.h"

namespace bodega::api {

// A checked body of POST /v1/chat/completions.
struct ChatRequest {
  GenerationFields common;
  json::array messages;  // as read_messages leaves them
  json::object template_kwargs;
  std::optional<std::string> reasoning_effort;
  Tools tools;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

// Throws Error(kInvalidRequest) that names the offending field.
ChatRequest parse_chat(std::string_view body, const ModelLimits& limits);

// POST /apply-template: the part of a chat request that shapes the prompt; other members are
// unknown.
ChatRequest parse_apply_template(std::string_view body, const ModelLimits& limits);

// What the template is rendered with: {messages, tools, add_generation_prompt, ...template_kwargs}.
json::object template_context(const ChatRequest& request, json::array messages,
                              const Guard& guard = {});

}  // namespace bodega::api
