#pragma once

#include <string_view>

#include "api/chat_request.h"

namespace bodega::api {

// A checked body of POST /v1/responses in the shape of a chat request. Nothing is stored: what
// refers to an earlier answer is refused.
struct ResponsesRequest {
  ChatRequest chat;
  json::object echoed;  // members of the request that the answer repeats
};

// Throws Error(kInvalidRequest) that names the offending field.
ResponsesRequest parse_responses(std::string_view body, const ModelLimits& limits);

}  // namespace bodega::api
