#include <unistd.h>

#include <cmath>

#include "api/errors.h"
#include "base/memory.h"
#include "server/worker_metrics.h"
#include "server/worker_state.h"

// Routes that answer at once, on the event loop: they tell the truth also while all else is busy.
namespace bodega::server {
namespace {

namespace json = boost::json;

// A loop whose last step began this long ago, with work to do, is stuck.
constexpr double kStuckSeconds = 60;
constexpr double kBytesPerMb = 1024 * 1024;

double to_mb(double bytes) { return std::round(bytes / kBytesPerMb * 10) / 10; }

double resident_mb() {
  const std::optional<ProcessMemory> memory = process_memory();
  return memory ? to_mb(static_cast<double>(memory->resident_bytes)) : 0;
}

struct Health {
  const char* status;
  const char* model_status;
  const char* reason;  // null when all is well
};

Health health_of(const WorkerState& state) {
  if (state.draining) return {"unhealthy", "unloading", "The model is being unloaded."};
  if (!state.ready) return {"loading", "loading", "The model is still loading."};
  const engine::EngineStats stats = state.model->stats();
  if (!stats.alive) return {"unhealthy", "failed", "The engine's loop has ended."};
  if (stats.last_step_age_s > kStuckSeconds)
    return {"unhealthy", "stuck", "The engine's loop is stuck."};
  return {"ok", "loaded", nullptr};
}

void health(const WorkerState& state, http::Exchange& exchange) {
  const Health health = health_of(state);
  const std::string id = state.ready ? state.model->facts().id : state.options.model.model_id;
  json::object body{{"status", health.status},
                    {"model_id", id},
                    {"model_status", health.model_status},
                    {"models_detail", json::array{json::object{{"id", id},
                                                               {"type", "lm"},
                                                               {"status", health.model_status},
                                                               {"ram_usage_mb", resident_mb()}}}}};
  if (state.ready) {
    const json::object report = state.model->device_report();
    for (const auto& member : report) body[member.key()] = member.value();
    body.erase("memory");
  }
  if (health.reason != nullptr) body["reason"] = health.reason;
  respond_json(exchange, body, health.reason == nullptr ? 200 : 503);
}

json::object model_card(const ModelFacts& facts) {
  return {{"id", facts.id},
          {"object", "model"},
          {"created", facts.created_unix_s},
          {"owned_by", "bodega"},
          {"context_length", facts.context_length},
          {"size_gb", std::round(static_cast<double>(facts.weight_bytes) / 1e6) / 1e3},
          {"download_percentage", 100},
          {"is_complete", true}};
}

void models(const WorkerState& state, http::Exchange& exchange) {
  respond_json(exchange, json::object{{"object", "list"},
                                      {"data", json::array{model_card(state.loaded().facts())}}});
}

void one_model(const WorkerState& state, http::Exchange& exchange, const std::string& id) {
  const ModelFacts& facts = state.loaded().facts();
  if (id != facts.id) {
    throw Error(ErrorKind::kModelNotFound, "The model \"" + id + "\" is not loaded.", "model");
  }
  respond_json(exchange, model_card(facts));
}

void queue_stats(const WorkerState& state, http::Exchange& exchange) {
  const WorkerModel& model = state.loaded();
  const engine::EngineStats stats = model.stats();
  const json::object numbers{{"queue_size", state.options.model.queue_size},
                             {"active_requests", stats.waiting + stats.running},
                             {"waiting", stats.waiting},
                             {"running", stats.running},
                             {"preempted", stats.preempted},
                             {"predicted_wait_seconds", stats.predicted_wait_s}};
  respond_json(exchange, json::object{{"status", "ok"},
                                      {"queue_stats", numbers},
                                      {"models", json::object{{model.facts().id, numbers}}}});
}

void loaded_models(const WorkerState& state, http::Exchange& exchange) {
  const WorkerModel& model = state.loaded();
  const ModelFacts& facts = model.facts();
  json::object entry{{"id", facts.id},
                     {"type", "lm"},
                     {"model_path", facts.path},
                     {"context_length", facts.context_length},
                     {"created_at", facts.created_unix_s},
                     {"status", health_of(state).model_status},
                     {"system_fingerprint", facts.fingerprint},
                     {"pid", ::getpid()}};
  json::object report = model.device_report();
  json::object memory =
      report["memory"].if_object() != nullptr ? report["memory"].as_object() : json::object();
  memory["rss_mb"] = resident_mb();
  if (!memory.contains("total_mb")) memory["total_mb"] = resident_mb();
  entry["memory"] = std::move(memory);
  if (json::value* engine = report.if_contains("engine")) entry["engine"] = *engine;
  respond_json(exchange, json::object{{"object", "list"}, {"data", json::array{std::move(entry)}}});
}

void metrics(const WorkerState& state, http::Exchange& exchange) {
  const WorkerModel& model = state.loaded();
  exchange.respond({200,
                    {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                    metrics_text(model.facts().id, model.stats())});
}

using StatusHandler = std::function<void(const WorkerState&, http::Exchange&, const std::string&)>;

http::RouteHandler immediate(const WorkerState& state, StatusHandler handler) {
  return [&state, handler = std::move(handler)](const http::Request& /*request*/,
                                                const ExchangePtr& exchange,
                                                const std::string& parameter) {
    try {
      handler(state, *exchange, parameter);
    } catch (const Error& error) {
      respond_error(*exchange, error);
    }
  };
}

StatusHandler without_parameter(void (*handler)(const WorkerState&, http::Exchange&)) {
  return [handler](const WorkerState& state, http::Exchange& exchange, const std::string&) {
    handler(state, exchange);
  };
}

}  // namespace

void add_status_routes(http::Router& router, WorkerState& state) {
  router.add("GET", "/health", immediate(state, without_parameter(health)));
  router.add("GET", "/v1/models", immediate(state, without_parameter(models)));
  router.add("GET", "/v1/models/{id}", immediate(state, one_model));
  router.add("GET", "/v1/queue/stats", immediate(state, without_parameter(queue_stats)));
  router.add("GET", "/v1/admin/loaded-models", immediate(state, without_parameter(loaded_models)));
  router.add("GET", "/metrics", immediate(state, without_parameter(metrics)));
}

}  // namespace bodega::server
