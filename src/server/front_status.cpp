#include "server/front_status.h"

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "api/json.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "server/answers.h"
#include "server/metrics_text.h"
#include "server/worker_reports.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

// A worker that is up but does not answer its health route is not well.
const char* status_of(const WorkerReport& report) {
  if (report.state != registry::WorkerState::kReady) return registry::name_of(report.state);
  if (report.status == 0) return "unresponsive";
  return report.status == 200 ? "loaded" : "stuck";
}

bool is_loaded(const WorkerReport& report) {
  return std::string_view(status_of(report)) == "loaded";
}

double resident_mb(int pid) {
  const auto memory = pid > 0 ? process_memory(pid) : std::nullopt;
  if (!memory) return 0;
  return static_cast<double>(memory->resident_bytes) / static_cast<double>(kMiB);
}

json::object model_detail(const WorkerReport& report) {
  return {{"id", report.id},
          {"type", "lm"},
          {"status", status_of(report)},
          {"ram_usage_mb", resident_mb(report.pid)},
          {"restarts", report.restarts}};
}

// What is wrong with the server as a whole; null when it can answer and nothing in it hangs.
const char* complaint(const std::vector<WorkerReport>& reports) {
  if (reports.empty()) return "no_models";
  const auto hangs = [](const WorkerReport& report) {
    return report.state == registry::WorkerState::kReady && !is_loaded(report);
  };
  if (std::any_of(reports.begin(), reports.end(), hangs)) return "a model does not respond";
  if (std::none_of(reports.begin(), reports.end(), is_loaded)) return "no model is ready";
  return nullptr;
}

void answer_health(const std::vector<WorkerReport>& reports, http::Exchange& exchange) {
  const char* const reason = complaint(reports);
  json::object body;
  if (!reports.empty()) body = reports.front().body;  // the default model's own figures
  body["status"] = reason == nullptr ? "ok" : "unhealthy";
  body["model_id"] = reports.empty() ? json::value(nullptr) : json::value(reports.front().id);
  body["model_status"] = reports.empty() ? "no_models" : status_of(reports.front());
  json::array details;
  for (const WorkerReport& report : reports) details.push_back(model_detail(report));
  body["models_detail"] = std::move(details);
  if (reason != nullptr) body["reason"] = reason;
  respond_json(exchange, body, reason == nullptr ? 200 : 503);
}

double number(const json::value& value) {
  return value.is_number() ? value.to_number<double>() : 0;
}

// Counts add up; of waits the longest is told.
void add_numbers(json::object& sum, const json::object& more) {
  for (const auto& member : more) {
    json::value& total = sum[member.key()];
    if (member.value().is_double() || total.is_double()) {
      total = std::max(number(total), number(member.value()));
    } else if (member.value().is_number()) {
      total = (total.is_number() ? total.to_number<std::int64_t>() : 0) +
              member.value().to_number<std::int64_t>();
    }
  }
}

void answer_queue_stats(const std::vector<WorkerReport>& reports, http::Exchange& exchange) {
  json::object sum{{"queue_size", 0}, {"active_requests", 0}, {"waiting", 0},
                   {"running", 0},    {"preempted", 0},       {"predicted_wait_seconds", 0.0}};
  json::object models;
  for (const WorkerReport& report : reports) {
    const json::value* const stats = report.body.if_contains("queue_stats");
    if (stats == nullptr || !stats->is_object()) {
      models[report.id] = nullptr;
      continue;
    }
    add_numbers(sum, stats->get_object());
    models[report.id] = *stats;
  }
  respond_json(exchange, json::object{{"status", "ok"}, {"queue_stats", sum}, {"models", models}});
}

json::object loaded_entry(const WorkerReport& report) {
  json::object entry;
  const json::value* const data = report.body.if_contains("data");
  if (data != nullptr && data->is_array() && !data->get_array().empty() &&
      data->get_array().front().is_object()) {
    entry = data->get_array().front().get_object();
  } else {
    entry = {{"id", report.id}, {"type", "lm"}, {"memory", {{"rss_mb", resident_mb(report.pid)}}}};
  }
  entry["status"] = report.status == 0 && report.state == registry::WorkerState::kReady
                        ? "unresponsive"
                        : registry::name_of(report.state);
  entry["pid"] = report.pid;
  entry["restarts"] = report.restarts;
  return entry;
}

json::object card_of(const registry::Worker& worker) {
  json::object card;
  if (!worker.card().empty()) card = api::parse_object(worker.card(), "A worker's card");
  card["id"] = worker.id();
  card["object"] = "model";
  card["status"] = registry::name_of(worker.state());
  return card;
}

}  // namespace

void FrontStatus::health(ExchangePtr exchange) {
  ask_workers(loop_, registry_, "/health", [exchange = std::move(exchange)](const auto& reports) {
    answer_health(reports, *exchange);
  });
}

void FrontStatus::queue_stats(ExchangePtr exchange) {
  ask_workers(loop_, registry_, "/v1/queue/stats",
              [exchange = std::move(exchange)](const auto& reports) {
                answer_queue_stats(reports, *exchange);
              });
}

void FrontStatus::loaded_models(ExchangePtr exchange) {
  ask_workers(loop_, registry_, "/v1/admin/loaded-models",
              [exchange = std::move(exchange)](const auto& reports) {
                json::array data;
                for (const WorkerReport& report : reports) data.push_back(loaded_entry(report));
                respond_json(*exchange, json::object{{"object", "list"}, {"data", data}});
              });
}

void FrontStatus::metrics(ExchangePtr exchange) {
  ask_workers(loop_, registry_, "/metrics", [exchange = std::move(exchange)](const auto& reports) {
    std::vector<std::string> texts{front_metrics(reports)};
    for (const WorkerReport& report : reports) texts.push_back(report.text);
    exchange->respond({200,
                       {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                       merge_metrics(texts)});
  });
}

void FrontStatus::models(const ExchangePtr& exchange) {
  json::array data;
  for (const registry::Worker* worker : registry_.workers()) data.push_back(card_of(*worker));
  respond_json(*exchange, json::object{{"object", "list"}, {"data", data}});
}

void FrontStatus::model(const registry::Worker& worker, const ExchangePtr& exchange) {
  respond_json(*exchange, card_of(worker));
}

}  // namespace bodega::server
