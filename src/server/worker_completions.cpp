#include <utility>

#include "api/completion_request.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"

namespace bodega::server {
namespace {

// max_tokens 0: the prompt is all that is asked for. The engine always makes one token, which is
// not shown; it runs anyway, because the prompt's own log-probabilities may be wanted.
void ask_for_echo_only(api::GenerationFields& fields, api::AnswerInfo& info) {
  info.echo_only = true;
  fields.max_tokens = 1;
  fields.stop.min_tokens = 0;
}

}  // namespace

void handle_completions(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                        const ExchangePtr& exchange) {
  api::CompletionRequest request =
      api::parse_completion(http_request.body, limits_of(state, model));
  settle_seed(request.common);
  api::AnswerInfo info = describe_answer(model, request.common, "cmpl");
  info.prompts = static_cast<int>(request.prompts.size());
  if (request.common.max_tokens == 0) ask_for_echo_only(request.common, info);

  std::vector<core::Request> requests;
  for (const api::Prompt& prompt : request.prompts) {
    std::vector<core::TokenId> tokens = prompt_tokens(model, prompt);
    if (request.echo) {
      const auto* text = std::get_if<std::string>(&prompt);
      info.echo.push_back({text != nullptr ? *text : model.decode(tokens, false), tokens});
    }
    requests.push_back(make_request(model, request.common, std::move(tokens)));
    requests.back().prompt_logprobs = request.echo && request.common.sampling.logprobs;
  }
  std::string id = info.id;
  launch(state, model, exchange,
         {http_request.path, http_request.body, request.common, std::move(id),
          api::make_completion_writer(std::move(info)), std::move(requests)});
}

}  // namespace bodega::server
