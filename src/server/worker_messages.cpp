#include <utility>

#include "api/anthropic_request.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"
#include "server/worker_tools.h"

// Anthropic's Messages API.
namespace bodega::server {
namespace {

// A template that cannot turn thinking on or off has no use for the wish.
void settle_thinking(const WorkerModel& model, api::ChatRequest& request) {
  if (!model.template_mentions("enable_thinking")) request.template_kwargs.erase("enable_thinking");
}

}  // namespace

void handle_messages(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                     const ExchangePtr& exchange) {
  api::ChatRequest request =
      api::parse_anthropic(http_request.body, limits_of(state, model), /*counting=*/false);
  settle_thinking(model, request);
  launch_chat(state, model, exchange, http_request, std::move(request), "msg",
              api::make_anthropic_writer);
}

void handle_count_tokens(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                         const ExchangePtr& exchange) {
  api::ChatRequest request =
      api::parse_anthropic(http_request.body, limits_of(state, model), /*counting=*/true);
  settle_thinking(model, request);
  const std::size_t count = chat_prompt(model, request).tokens.size();
  respond_json(*exchange, boost::json::object{{"input_tokens", count}});
}

}  // namespace bodega::server
