#pragma once

#include <string_view>
#include <vector>

#include "api/answer.h"
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

// Submits the requests and lets the writer answer; logs the answer where that is asked for.
struct Launch {
  const http::Request& http_request;
  const api::GenerationFields& fields;
  std::string answer_id;
  std::unique_ptr<api::AnswerWriter> writer;
  std::vector<core::Request> requests;
};
void launch(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange, Launch launch);

}  // namespace bodega::server
