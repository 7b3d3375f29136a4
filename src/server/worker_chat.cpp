#include <utility>

#include "api/chat_request.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"
#include "server/worker_tools.h"

namespace bodega::server {

void launch_chat(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange,
                 const http::Request& http_request, api::ChatRequest request,
                 std::string_view id_prefix, const MakeWriter& make_writer) {
  settle_seed(request.common);
  ToolSetup tools = set_up_tools(model, state.options, request.tools, request.common);
  ChatPrompt prompt = chat_prompt(model, request);
  std::vector<core::Request> requests;
  requests.push_back(make_request(model, request.common, std::move(prompt.tokens)));
  requests.back().shown_tokens = std::move(tools.shown);

  api::AnswerInfo info = describe_answer(model, request.common, id_prefix);
  info.reasoning = prompt.reasoning;
  info.make_tool_parser = std::move(tools.make_parser);
  info.parallel_calls = request.tools.parallel;
  std::string id = info.id;
  launch(state, model, exchange,
         {http_request.path, http_request.body, std::move(request.common), std::move(id),
          make_writer(std::move(info)), std::move(requests), prompt.reasoning});
}

void handle_chat(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                 const ExchangePtr& exchange) {
  api::ChatRequest request = api::parse_chat(http_request.body, limits_of(state, model));
  launch_chat(state, model, exchange, http_request, std::move(request), "chatcmpl",
              api::make_chat_writer);
}

}  // namespace bodega::server
