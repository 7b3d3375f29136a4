#include <string>
#include <utility>

#include "api/completion_request.h"
#include "server/worker_answer.h"
#include "server/worker_prompt.h"

namespace bodega::server {
namespace {

constexpr std::size_t kMostAnswers = 256;  // prompts times n of one request

}  // namespace

void handle_completions(WorkerState& state, WorkerModel& model, const http::Request& http_request,
                        const ExchangePtr& exchange) {
  api::CompletionRequest request =
      api::parse_completion(http_request.body, limits_of(state, model));
  settle_seed(request.common);
  api::AnswerInfo info = describe_answer(model, request.common, "cmpl");
  info.prompts = static_cast<int>(request.prompts.size());
  if (request.prompts.size() * static_cast<std::size_t>(request.common.n) > kMostAnswers) {
    api::refuse("n", "and the number of prompts ask for more than " + std::to_string(kMostAnswers) +
                         " answers: send fewer at once");
  }

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
