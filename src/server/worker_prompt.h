#pragma once

#include <string>
#include <vector>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/reasoning.h"
#include "server/worker_model.h"

namespace bodega::server {

// From what a client sent to what the model sees.

// A chat as the model sees it. Strings of messages can never become control tokens.
struct ChatPrompt {
  std::vector<core::TokenId> tokens;
  api::Reasoning reasoning = api::Reasoning::kNone;  // how the answer will begin
};
ChatPrompt chat_prompt(const WorkerModel& model, const api::ChatRequest& request);

// The same prompt as text, for people to read.
std::string chat_text(const WorkerModel& model, const api::ChatRequest& request);

// The tokens of a raw prompt: control tokens that it spells are meant.
std::vector<core::TokenId> prompt_tokens(const WorkerModel& model, const api::Prompt& prompt);

}  // namespace bodega::server
