#pragma once

#include <string_view>

#include "api/chat_request.h"

namespace bodega::api {

// A checked body of POST /v1/messages, in the shape of a chat request. `counting`: of
// /v1/messages/count_tokens, which asks for no answer. Throws Error(kInvalidRequest) that names the
// offending field.
ChatRequest parse_anthropic(std::string_view body, const ModelLimits& limits, bool counting);

}  // namespace bodega::api
