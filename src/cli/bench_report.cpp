#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bodega::cli {
namespace {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(share * last))];
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

// Tokens a second of all answers together, counted only while every one of them was being decoded:
// from the last first piece to the first last piece.
double decode_rate(const std::vector<const RequestTrace*>& answered) {
  double from = 0;
  double until = std::numeric_limits<double>::max();
  for (const RequestTrace* trace : answered) {
    from = std::max(from, trace->pieces.front());
    until = std::min(until, trace->pieces.back());
  }
  if (until <= from) return 0;
  double tokens = 0;
  for (const RequestTrace* trace : answered) {
    const double tokens_a_piece =
        static_cast<double>(trace->completion_tokens) / static_cast<double>(trace->pieces.size());
    for (const double at : trace->pieces) tokens += at > from && at <= until ? tokens_a_piece : 0;
  }
  return tokens / (until - from);
}

}  // namespace

BenchRow summarise(int streams, const std::vector<RequestTrace>& traces) {
  std::vector<const RequestTrace*> answered;
  std::vector<double> prompts;
  std::vector<double> first_token;
  std::vector<double> prefill;
  double begin = std::numeric_limits<double>::max();
  double end = 0;
  int tokens = 0;
  for (const RequestTrace& trace : traces) {
    if (!trace.error.empty() || trace.pieces.empty()) continue;
    answered.push_back(&trace);
    prompts.push_back(trace.prompt_tokens);
    first_token.push_back(trace.pieces.front() - trace.sent);
    prefill.push_back((trace.prompt_tokens - trace.cached_tokens) / first_token.back());
    begin = std::min(begin, trace.sent);
    end = std::max(end, trace.pieces.back());
    tokens += trace.completion_tokens;
  }
  BenchRow row;
  row.streams = streams;
  row.failed = static_cast<int>(traces.size() - answered.size());
  if (answered.empty()) return row;
  row.prompt_tokens = quantile(prompts, 0.5);
  row.first_token_s = quantile(first_token, 0.5);
  row.first_token_p95_s = quantile(first_token, 0.95);
  row.prefill_tokens_per_s = quantile(prefill, 0.5);
  row.decode_tokens_per_s = decode_rate(answered);
  row.total_tokens_per_s = tokens / (end - begin);
  return row;
}

BenchRow median_row(std::vector<BenchRow> repeats) {
  const auto middle = repeats.begin() + static_cast<std::ptrdiff_t>(repeats.size() / 2);
  std::nth_element(repeats.begin(), middle, repeats.end(),
                   [](const BenchRow& a, const BenchRow& b) {
                     return a.decode_tokens_per_s < b.decode_tokens_per_s;
                   });
  return *middle;
}

std::string table(const std::vector<BenchRow>& rows) {
  std::string out =
      fmt::format("{:>7} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>7}\n", "streams", "prompt",
                  "first tok s", "p95 s", "prefill t/s", "decode t/s", "overall t/s", "failed");
  for (const BenchRow& row : rows) {
    out += fmt::format("{:>7} {:>7.0f} {:>12.3f} {:>12.3f} {:>12.1f} {:>12.1f} {:>12.1f} {:>7}\n",
                       row.streams, row.prompt_tokens, row.first_token_s, row.first_token_p95_s,
                       row.prefill_tokens_per_s, row.decode_tokens_per_s, row.total_tokens_per_s,
                       row.failed);
  }
  return out;
}

boost::json::array to_json(const std::vector<BenchRow>& rows) {
  boost::json::array out;
  for (const BenchRow& row : rows) {
    out.push_back({{"streams", row.streams},
                   {"prompt_tokens", rounded(row.prompt_tokens)},
                   {"first_token_s", rounded(row.first_token_s)},
                   {"first_token_p95_s", rounded(row.first_token_p95_s)},
                   {"prefill_tokens_per_s", rounded(row.prefill_tokens_per_s)},
                   {"decode_tokens_per_s", rounded(row.decode_tokens_per_s)},
                   {"total_tokens_per_s", rounded(row.total_tokens_per_s)},
                   {"failed", row.failed}});
  }
  return out;
}

}  // namespace bodega::cli
