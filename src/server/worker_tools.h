#pragma once

#include "api/chat_request.h"
#include "api/tool_grammar.h"
#include "server/worker_answer.h"

namespace bodega::server {

// What a chat's tools ask of the answer: the parser of its calls, the control tokens that the
// parser has to see, and the grammar that tool_choice demands (it takes the place of fields.bound).
struct ToolSetup {
  api::MakeToolParser make_parser;
  std::vector<core::TokenId> shown;
};
ToolSetup set_up_tools(const WorkerModel& model, const WorkerOptions& options,
                       const api::Tools& tools, api::GenerationFields& fields);

}  // namespace bodega::server
