#pragma once

#include <string>
#include <vector>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "server/worker_model.h"

namespace bodega::server {

// From what a client sent to what the model sees.

// The tokens of a chat. Strings of messages can never become control tokens.
std::vector<core::TokenId> chat_tokens(const WorkerModel& model, const api::ChatRequest& request);

// The same prompt as text, for people to read.
std::string chat_text(const WorkerModel& model, const api::ChatRequest& request);

// The tokens of a raw prompt: control tokens that it spells are meant.
std::vector<core::TokenId> prompt_tokens(const WorkerModel& model, const api::Prompt& prompt);

}  // namespace bodega::server
