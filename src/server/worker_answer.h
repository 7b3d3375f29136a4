#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer.h"
#include "api/chat_request.h"
#include "api/generation_fields.h"
#include "server/worker_state.h"

namespace bodega::server {

// What the handlers of chat and completions share, from checked fields to a running answer.

api::ModelLimits limits_of(const WorkerState& state, const WorkerModel& model);

// Fills in the seed where the client gave none.
void settle_seed(api::GenerationFields& fields);

// The engine's request for one tokenised prompt. Throws kContextLengthExceeded.
core::Request make_request(const WorkerModel& model, const api::GenerationFields& fields,
                           std::vector<core::TokenId> prompt);

// Id, model, times and options of the answer. `prefix` begins its id.
api::AnswerInfo describe_answer(const WorkerModel& model, const api::GenerationFields& fields,
                                std::string_view prefix);

// Submits the requests and lets the writer answer; logs the answer where that is asked for. A
// grammar is compiled first, on threads of its own.
struct Launch {
  std::string route;
  std::string body;
  api::GenerationFields fields;
  std::string answer_id;
  std::unique_ptr<api::AnswerWriter> writer;
  std::vector<core::Request> requests;
  api::Reasoning reasoning = api::Reasoning::kNone;  // a grammar binds after the thought
};
void launch(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange, Launch launch);

// A chat in any dialect, from its checked request on: prompt, tools, and the writer of the dialect.
using MakeWriter = std::function<std::unique_ptr<api::AnswerWriter>(api::AnswerInfo)>;
void launch_chat(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange,
                 const http::Request& http_request, api::ChatRequest request,
                 std::string_view id_prefix, const MakeWriter& make_writer);

}  // namespace bodega::server
