#include "server/worker_metrics.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "server/metrics_text.h"

namespace bodega::server {
namespace {

using engine::EngineStats;

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  double (*value)(const EngineStats&);
};

template <auto Member>
double read(const EngineStats& stats) {
  return static_cast<double>(stats.*Member);
}

constexpr auto kMetrics = std::to_array<Metric>({
    {"bodega_requests_waiting", "gauge", "Requests in the queue.", read<&EngineStats::waiting>},
    {"bodega_requests_running", "gauge", "Requests in the batch.", read<&EngineStats::running>},
    {"bodega_preemptions_total", "counter", "Sequences that lost their blocks.",
     read<&EngineStats::preempted>},
    {"bodega_steps_total", "counter", "Steps of the engine.", read<&EngineStats::steps>},
    {"bodega_prompt_tokens_total", "counter", "Tokens of prompts.",
     read<&EngineStats::prompt_tokens>},
    {"bodega_cached_tokens_total", "counter", "Prompt tokens found in the cache.",
     read<&EngineStats::cached_tokens>},
    {"bodega_generated_tokens_total", "counter", "Tokens sampled.",
     read<&EngineStats::generated_tokens>},
    {"bodega_kv_blocks", "gauge", "Blocks of the KV pool.", read<&EngineStats::blocks_total>},
    {"bodega_kv_blocks_free", "gauge", "Blocks in no use.", read<&EngineStats::blocks_free>},
    {"bodega_kv_blocks_cached", "gauge", "Blocks kept for reuse.",
     read<&EngineStats::blocks_cached>},
    {"bodega_last_step_age_seconds", "gauge", "Since the last step began, 0 when idle.",
     read<&EngineStats::last_step_age_s>},
    {"bodega_predicted_wait_seconds", "gauge", "What a new request would wait.",
     read<&EngineStats::predicted_wait_s>},
    {"bodega_engine_alive", "gauge", "1 while the engine's loop runs.", read<&EngineStats::alive>},
});

}  // namespace

std::string metrics_text(std::string_view model_id, const EngineStats& stats) {
  const std::string label = escape_label(model_id);
  std::string out;
  for (const Metric& metric : kMetrics) {
    fmt::format_to(std::back_inserter(out),
                   "# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{model=\"{3}\"}} {4}\n", metric.name,
                   metric.help, metric.type, label, metric.value(stats));
  }
  return out;
}

}  // namespace bodega::server
