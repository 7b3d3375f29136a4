#include "server/worker_reports.h"

#include <memory>
#include <utility>

#include "api/json.h"
#include "base/errors.h"
#include "http/client.h"

namespace bodega::server {
namespace {

constexpr std::chrono::milliseconds kPatience{2000};

http::Endpoint endpoint_of(const std::string& socket_path) { return {socket_path, "", 0}; }

http::ClientRequest get(const std::string& target) { return {"GET", target, {}, {}, kPatience}; }

// A worker is ours, but may be dying: what it says is checked like anything else.
std::optional<boost::json::object> parse(const std::string& body) {
  try {
    return api::parse_object(body, "A worker's answer");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// {"object": "list", "data": [card]} -> card
std::string card_in(const std::string& body) {
  const auto object = parse(body);
  const auto* const data = object ? object->if_contains("data") : nullptr;
  if (data == nullptr || !data->is_array() || data->get_array().empty()) return "{}";
  return api::to_text(data->get_array().front());
}

struct Collection {
  std::vector<WorkerReport> reports;
  std::size_t missing = 0;
  std::function<void(std::vector<WorkerReport>)> on_reports;

  void answer(std::size_t index, int status, const std::string& body) {
    WorkerReport& report = reports[index];
    report.status = status;
    if (auto parsed = parse(body)) report.body = std::move(*parsed);
    report.text = status == 200 ? body : "";
    if (--missing == 0) on_reports(std::move(reports));
  }
};

}  // namespace

void ask_workers(http::Loop& loop, const registry::Registry& registry, const std::string& target,
                 std::function<void(std::vector<WorkerReport>)> on_reports) {
  const auto all = std::make_shared<Collection>();
  all->on_reports = std::move(on_reports);
  all->missing = 1;  // this function itself, so that an empty registry answers too
  for (const registry::Worker* worker : registry.workers()) {
    const std::size_t index = all->reports.size();
    all->reports.push_back(
        {worker->id(), worker->state(), worker->pid(), worker->restarts(), 0, {}, {}});
    if (!worker->ready()) continue;
    ++all->missing;
    http::fetch(
        loop, endpoint_of(worker->socket_path()), get(target),
        [all, index](int status, const std::string& body) { all->answer(index, status, body); });
  }
  if (--all->missing == 0) all->on_reports(std::move(all->reports));
}

void probe_worker(http::Loop& loop, const std::string& socket_path,
                  std::function<void(bool ready, const std::string& card)> on_answer) {
  http::fetch(
      loop, endpoint_of(socket_path), get("/health"),
      [&loop, socket_path, on_answer = std::move(on_answer)](int status, const std::string&) {
        if (status != 200) return on_answer(false, "");
        http::fetch(loop, endpoint_of(socket_path), get("/v1/models"),
                    [on_answer](int code, const std::string& body) {
                      on_answer(code == 200, card_in(body));
                    });
      });
}

}  // namespace bodega::server
