#include <utility>

#include "api/chat_request.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"

namespace bodega::server {

void handle_chat(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                 const ExchangePtr& exchange) {
  api::ChatRequest request = api::parse_chat(http_request.body, limits_of(state, model));
  settle_seed(request.common);
  std::vector<core::Request> requests;
  ChatPrompt prompt = chat_prompt(model, request);
  requests.push_back(make_request(model, request.common, std::move(prompt.tokens)));

  api::AnswerInfo info = describe_answer(model, request.common, "chatcmpl");
  info.reasoning = prompt.reasoning;
  std::string id = info.id;
  launch(state, model, exchange,
         {http_request, request.common, std::move(id), api::make_chat_writer(std::move(info)),
          std::move(requests)});
}

}  // namespace bodega::server
