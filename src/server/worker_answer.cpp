#include "server/worker_answer.h"

#include <random>
#include <utility>

#include "api/json.h"
#include "base/clock.h"
#include "base/errors.h"
#include "server/worker_log.h"

namespace bodega::server {
namespace {

// The hook runs on the engine's thread, so all that can be done before is done here.
FinishHook log_hook(WorkerState& state, const WorkerModel& model, const Launch& launch) {
  LoggedAnswer answer;
  answer.id = launch.answer_id;
  answer.route = launch.http_request.path;
  answer.body = api::to_text(api::parse_json(launch.http_request.body));
  answer.fingerprint = model.facts().fingerprint;
  answer.seed = launch.fields.sampling.seed;
  return [&state, answer](const std::vector<std::vector<core::TokenId>>& choices) mutable {
    answer.choices = choices;
    state.request_log->write(answer);
  };
}

}  // namespace

api::ModelLimits limits_of(const WorkerState& state, const WorkerModel& model) {
  return {model.facts().context_length, model.facts().vocab_size, state.options.strict};
}

void settle_seed(api::GenerationFields& fields) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  fields.sampling.seed = fields.seed ? *fields.seed : random();
}

core::Request make_request(const WorkerModel& model, const api::GenerationFields& fields,
                           std::vector<core::TokenId> prompt) {
  if (prompt.empty()) {
    throw Error(ErrorKind::kInvalidRequest, "The prompt holds no token. Send some text.", "prompt");
  }
  core::Request request;
  request.stop = fields.stop;
  request.stop.max_tokens = api::resolve_max_tokens(
      fields.max_tokens, static_cast<int>(prompt.size()), model.facts().context_length);
  request.prompt = std::move(prompt);
  request.sampling = fields.sampling;
  request.n = fields.n;
  request.priority = fields.priority;
  return request;
}

api::AnswerInfo describe_answer(const WorkerModel& model, const api::GenerationFields& fields,
                                std::string_view prefix) {
  api::AnswerInfo info;
  info.id = api::new_answer_id(prefix);
  info.model = model.facts().id;
  info.fingerprint = model.facts().fingerprint;
  info.created = unix_seconds();
  info.n = fields.n;
  info.stream = fields.stream;
  info.include_usage = fields.include_usage;
  info.continuous_usage = fields.continuous_usage;
  info.logprobs = fields.sampling.logprobs;
  info.token_ids = fields.return_token_ids;
  info.warnings = fields.warnings;
  info.token_bytes = [&model](core::TokenId id) { return model.token_bytes(id); };
  return info;
}

void launch(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange, Launch launch) {
  const auto generation = std::make_shared<Generation>(model, exchange, state.delivery(),
                                                       launch.fields.stream, launch.fields.n);
  if (state.request_log) generation->on_finish(log_hook(state, model, launch));
  if (!launch.fields.script.empty()) {
    for (core::Request& request : launch.requests) {
      generation->fail_after(model.apply_script(launch.fields.script, request));
    }
  }
  generation->start(std::move(launch.writer), std::move(launch.requests), *state.loop);
}

}  // namespace bodega::server
