#include "cli/simulate/sim_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"

namespace bodega::cli {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::uint64_t again(const SimStats& stats) {
  return stats.computed_tokens > stats.new_tokens ? stats.computed_tokens - stats.new_tokens : 0;
}

double rate(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

}  // namespace

boost::json::object to_json(const SimStats& stats, int machines) {
  return {{"machines", machines},
          {"finished", stats.finished},
          {"refused", stats.refused},
          {"preempted", stats.preempted},
          {"steps", stats.steps},
          {"seconds", rounded(stats.end_s)},
          {"busy_share", rounded(stats.busy_s / std::max(stats.end_s * machines, 1e-9))},
          {"ttft_p50_s", rounded(stats.ttft.quantile(0.5))},
          {"ttft_p95_s", rounded(stats.ttft.quantile(0.95))},
          {"ttft_p99_s", rounded(stats.ttft.quantile(0.99))},
          {"gap_p50_s", rounded(stats.gap.quantile(0.5))},
          {"gap_p95_s", rounded(stats.gap.quantile(0.95))},
          {"gap_p99_s", rounded(stats.gap.quantile(0.99))},
          {"output_tokens_per_s", rounded(rate(stats.generated_tokens, stats.end_s))},
          {"prompt_tokens", stats.prompt_tokens},
          {"new_tokens", stats.new_tokens},
          {"hot_share", rounded(share(stats.hot_tokens, stats.prompt_tokens))},
          {"ssd_share", rounded(share(stats.restored_tokens, stats.prompt_tokens))},
          {"computed_tokens", stats.computed_tokens},
          {"recomputed_tokens", again(stats)},
          {"ssd_bytes", stats.disk_bytes},
          {"ssd_written", stats.disk_written}};
}

std::string to_text(const SimStats& stats, int machines) {
  return fmt::format(
      "requests     {} finished, {} refused, {} preemptions, {} steps on {} machine{}\n"
      "time         {:.1f} s simulated, devices busy {:.0f} %\n"
      "first token  p50 {:.3f} s, p95 {:.3f} s, p99 {:.3f} s\n"
      "gaps         p50 {:.1f} ms, p95 {:.1f} ms, p99 {:.1f} ms\n"
      "throughput   {:.1f} output tokens/s\n"
      "prompts      {} tokens: {:.1f} % from memory, {:.1f} % from the SSD, {} computed, {} of "
      "them "
      "again\n"
      "SSD          {} held, {} written\n",
      stats.finished, stats.refused, stats.preempted, stats.steps, machines,
      machines == 1 ? "" : "s", stats.end_s,
      100 * stats.busy_s / std::max(stats.end_s * machines, 1e-9), stats.ttft.quantile(0.5),
      stats.ttft.quantile(0.95), stats.ttft.quantile(0.99), stats.gap.quantile(0.5) * 1e3,
      stats.gap.quantile(0.95) * 1e3, stats.gap.quantile(0.99) * 1e3,
      rate(stats.generated_tokens, stats.end_s), stats.prompt_tokens,
      100 * share(stats.hot_tokens, stats.prompt_tokens),
      100 * share(stats.restored_tokens, stats.prompt_tokens), stats.computed_tokens, again(stats),
      format_bytes(static_cast<std::uint64_t>(stats.disk_bytes)),
      format_bytes(static_cast<std::uint64_t>(stats.disk_written)));
}

}  // namespace bodega::cli
