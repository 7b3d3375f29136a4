#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http/loop.h"
#include "registry/registry.h"

namespace bodega::server {

// One worker's answer to a status route.
struct WorkerReport {
  std::string id;
  registry::WorkerState state{};
  int pid = 0;
  int restarts = 0;
  int status = 0;            // HTTP; 0 when it is not ready or did not answer in time
  std::string text;          // the answer as it came
  boost::json::object body;  // the same, where it is a JSON object
};

// Asks every worker that is ready, at once. Loop's thread; so is `on_reports`, called once.
void ask_workers(http::Loop& loop, const registry::Registry& registry, const std::string& target,
                 std::function<void(std::vector<WorkerReport>)> on_reports);

// registry::Environment::probe: a worker is ready when its health says ok; its card is the entry of
// its model list.
void probe_worker(http::Loop& loop, const std::string& socket_path,
                  std::function<void(bool ready, const std::string& card)> on_answer);

}  // namespace bodega::server
