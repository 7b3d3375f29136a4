#include <utility>

#include "api/responses_request.h"
#include "server/worker_answer.h"

// OpenAI's Responses API, without a memory.
namespace bodega::server {

void handle_responses(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                      const ExchangePtr& exchange) {
  api::ResponsesRequest request = api::parse_responses(http_request.body, limits_of(state, model));
  // Clients ask for an effort of every model.
  if (request.chat.reasoning_effort && !model.template_mentions("reasoning_effort")) {
    request.chat.reasoning_effort.reset();
    request.chat.common.warnings.push_back(
        "reasoning.effort was not used: it is not a setting of this model's chat template.");
  }
  const auto make_writer = [echoed = std::move(request.echoed)](api::AnswerInfo info) {
    return api::make_responses_writer(std::move(info), echoed);
  };
  launch_chat(state, model, exchange, http_request, std::move(request.chat), "resp", make_writer);
}

}  // namespace bodega::server
