#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/generation_fields.h"

namespace bodega::api {

using Prompt = std::variant<std::string, std::vector<core::TokenId>>;

// A checked body of POST /v1/completions.
struct CompletionRequest {
  GenerationFields common;
  std::vector<Prompt> prompts;  // at least one
  bool echo = false;
};

// Throws Error(kInvalidRequest) that names the offending field. max_tokens 0 is allowed with echo
// only.
CompletionRequest parse_completion(std::string_view body, const ModelLimits& limits);

}  // namespace bodega::api
