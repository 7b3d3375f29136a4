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
  answer.route = launch.route;
  answer.body = api::to_text(api::parse_json(launch.body));
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
  info.stop_strings = fields.stop.stop;
  info.warnings = fields.warnings;
  info.token_bytes = [&model](core::TokenId id) { return model.token_bytes(id); };
  return info;
}

namespace {

using Constraint = std::shared_ptr<const core::TokenConstraint>;

Constraint bind_answer(WorkerModel& model, const api::BoundAnswer& bound,
                       const ThoughtLimit& thought) {
  try {
    return model.bind(&bound.source, thought);
  } catch (const Error& error) {
    for (const api::BoundAnswer& part : bound.parts) bind_answer(model, part, thought);
    const std::string path = bound.param + error.param();
    throw Error(error.kind(), path + ": " + error.what(), path);
  }
}

// What the answers keep to: a grammar, a bound on the thought, or both.
void bind_requests(WorkerModel& model, Launch& launch) {
  const ThoughtLimit thought{launch.reasoning, launch.fields.max_reasoning_tokens};
  const Constraint constraint = launch.fields.bound
                                    ? bind_answer(model, *launch.fields.bound, thought)
                                    : model.bind(nullptr, thought);
  for (core::Request& request : launch.requests) request.constraint = constraint;
}

void start(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange, Launch& launch) {
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

}  // namespace

void launch(WorkerState& state, WorkerModel& model, const ExchangePtr& exchange, Launch launch) {
  const bool thinks = launch.reasoning != api::Reasoning::kNone;
  if (!launch.fields.bound && !(thinks && launch.fields.max_reasoning_tokens)) {
    start(state, model, exchange, launch);
    return;
  }
  auto waiting = std::make_shared<Launch>(std::move(launch));
  state.compile.post([&state, &model, exchange, waiting] {
    if (exchange->closed()) return;
    try {
      bind_requests(model, *waiting);
      start(state, model, exchange, *waiting);
    } catch (...) {
      answer_exception(*exchange);
    }
  });
}

}  // namespace bodega::server
