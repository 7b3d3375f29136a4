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

template <auto Member>
double price(const EngineStats& stats) {
  return static_cast<double>(stats.cost.*Member);
}

using cost::CostReport;

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
    {"bodega_kv_blocks_given_back", "gauge", "Blocks whose memory the system has for now.",
     read<&EngineStats::blocks_given_back>},
    {"bodega_memory_pressure", "gauge", "Of the system: 0 none, 1 some, 2 critical.",
     read<&EngineStats::memory_pressure>},
    {"bodega_kv_hot_hits_total", "counter", "Blocks reused from memory.",
     read<&EngineStats::hot_blocks>},
    {"bodega_kv_ssd_hits_total", "counter", "Blocks read back from the SSD.",
     read<&EngineStats::restored_blocks>},
    {"bodega_kv_ssd_writes_total", "counter", "Blocks written to the SSD.",
     read<&EngineStats::spilled_blocks>},
    {"bodega_kv_ssd_bad_total", "counter", "Files on the SSD that were not to be believed.",
     read<&EngineStats::bad_blocks>},
    {"bodega_kv_ssd_bytes", "gauge", "Bytes of KV on the SSD.", read<&EngineStats::disk_bytes>},
    {"bodega_kv_saved_seconds_total", "counter", "Predicted time that reuse from memory saved.",
     read<&EngineStats::saved_s>},
    {"bodega_cost_prediction_error_ratio", "gauge",
     "Median of |predicted - real| / real over the last steps.", price<&CostReport::error>},
    {"bodega_cost_decode_step_seconds", "gauge", "Predicted step of one row.",
     price<&CostReport::decode_step_s>},
    {"bodega_cost_row_seconds", "gauge", "Predicted time of one more row of a long chunk.",
     price<&CostReport::row_s>},
    {"bodega_cost_ridge_rows", "gauge", "Rows whose arithmetic takes as long as the weights' read.",
     price<&CostReport::ridge_rows>},
    {"bodega_cost_bandwidth_gb_per_second", "gauge", "Weights read by a step of one row.",
     price<&CostReport::bandwidth_gb_s>},
    {"bodega_cost_gflops", "gauge", "Arithmetic of a long chunk.", price<&CostReport::gflops>},
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
