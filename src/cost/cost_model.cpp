#include "cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace bodega::cost {
namespace {

constexpr double kCommon = 1.0;  // how far the profile may be off as a whole
constexpr double kOwn = 0.5;     // and each of its parts by itself
constexpr std::size_t kErrors = 256;
constexpr double kSsdWeight = 0.1;
constexpr int kFewRows = 64;  // between these the price of one more row is read off
constexpr int kManyRows = 512;
constexpr std::string_view kHeader = "bodega-cost 1";

// The two knots around `rows` and the share of the upper one; past the last knot it exceeds 1 and
// is in proportion to the rows.
struct Place {
  int knot;
  double share;
};

Place place_of(int rows, int knots) {
  const int last = 1 << (knots - 1);
  if (rows >= last) return {knots - 2, static_cast<double>(rows) / last};
  int knot = 0;
  while (knot + 2 < knots && (2 << knot) <= rows) ++knot;
  const double low = 1 << knot;
  return {knot, std::max(0.0, (rows - low) / low)};
}

double rate(double bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

}  // namespace

CostModel::CostModel(const MachineProfile& machine, const ModelWork& work)
    : machine_(machine), work_(work), squares_(kFeatures, kCommon, kOwn) {
  const auto read = [&](std::int64_t bytes) {
    return static_cast<double>(bytes) / machine.bandwidth;
  };
  const auto compute = [&](double flops) { return flops / machine.flops; };
  for (int knot = 0; knot < kKnots; ++knot) {
    const double flops = static_cast<double>(work.flops_per_row) * (1 << knot);
    prior_[static_cast<std::size_t>(knot)] =
        machine.overhead_s + std::max(read(work.weight_bytes), compute(flops));
  }
  prior_[kHead] = read(work.head_bytes);
  prior_[kSampled] = compute(static_cast<double>(work.flops_per_sampled_row));
  prior_[kKvTokens] = read(work.kv_bytes_per_token);
  prior_[kKvPairs] = compute(static_cast<double>(work.flops_per_kv_token));
  refresh_curve();
}

CostModel::Features CostModel::features(const StepShape& shape) const {
  Features f{};
  const Place place = place_of(std::max(shape.rows, 1), kKnots);
  const auto knot = static_cast<std::size_t>(place.knot);
  f[knot] = prior_[knot] * (1 - std::min(place.share, 1.0));
  f[knot + 1] = prior_[knot + 1] * place.share;
  f[kHead] = shape.sampled_rows > 0 ? prior_[kHead] : 0;
  f[kSampled] = prior_[kSampled] * shape.sampled_rows;
  f[kKvTokens] = prior_[kKvTokens] * static_cast<double>(shape.kv_tokens);
  f[kKvPairs] = prior_[kKvPairs] * static_cast<double>(shape.kv_pairs);
  return f;
}

// More rows never take less time: without this a noisy knot could stop the search for a chunk.
void CostModel::refresh_curve() {
  double least = 0;
  for (int knot = 0; knot < kKnots; ++knot) {
    const auto i = static_cast<std::size_t>(knot);
    least = curve_[i] = std::max(least, prior_[i] * factor(knot));
  }
}

double CostModel::rows_seconds(int rows) const {
  const Place place = place_of(std::max(rows, 1), kKnots);
  const auto knot = static_cast<std::size_t>(place.knot);
  if (place.share > 1) return curve_[knot + 1] * place.share;
  return curve_[knot] + (curve_[knot + 1] - curve_[knot]) * place.share;
}

double CostModel::step_seconds(const StepShape& shape) const {
  double seconds = rows_seconds(shape.rows);
  if (shape.sampled_rows > 0) {
    seconds +=
        prior_[kHead] * factor(kHead) + prior_[kSampled] * factor(kSampled) * shape.sampled_rows;
  }
  return seconds + prior_[kKvTokens] * factor(kKvTokens) * static_cast<double>(shape.kv_tokens) +
         prior_[kKvPairs] * factor(kKvPairs) * static_cast<double>(shape.kv_pairs);
}

int CostModel::longest_chunk(const StepShape& step, int position, double budget_s,
                             int ceiling) const {
  int fits = 0;
  int too_long = ceiling + 1;
  while (too_long - fits > 1) {
    const int middle = fits + (too_long - fits) / 2;
    (step_seconds(step.with_rows(position, middle)) <= budget_s ? fits : too_long) = middle;
  }
  return fits;
}

double CostModel::row_seconds() const {
  return (rows_seconds(kManyRows) - rows_seconds(kFewRows)) / (kManyRows - kFewRows);
}

double CostModel::ridge_rows() const {
  return std::max(1.0, (curve_[0] - machine_.overhead_s) / std::max(row_seconds(), 1e-12));
}

double CostModel::recompute_seconds(int position, int tokens) const {
  StepShape shape;
  shape.add_rows(position, tokens);
  return row_seconds() * tokens +
         prior_[kKvPairs] * factor(kKvPairs) * static_cast<double>(shape.kv_pairs);
}

double CostModel::reload_seconds(std::int64_t bytes) const {
  return machine_.ssd_latency_s + static_cast<double>(bytes) / machine_.ssd_read;
}

double CostModel::spill_seconds(std::int64_t bytes) const {
  return machine_.ssd_latency_s + static_cast<double>(bytes) / machine_.ssd_write;
}

void CostModel::observe_step(const StepShape& shape, double seconds, bool calibration) {
  if (shape.rows <= 0 || !(seconds > 0)) return;
  const double predicted = step_seconds(shape);
  squares_.observe(features(shape), seconds);
  refresh_curve();
  if (calibration) return;
  const auto error = static_cast<float>(std::abs(predicted - seconds) / seconds);
  if (errors_.size() < kErrors) {
    errors_.push_back(error);
  } else {
    errors_[steps_ % kErrors] = error;
  }
  ++steps_;
}

void CostModel::observe_read(std::int64_t bytes, double seconds) {
  const double transfer = std::max(seconds - machine_.ssd_latency_s, seconds / 10);
  if (!(transfer > 0) || bytes <= 0) return;
  machine_.ssd_read += kSsdWeight * (static_cast<double>(bytes) / transfer - machine_.ssd_read);
}

void CostModel::observe_write(std::int64_t bytes, double seconds) {
  const double transfer = std::max(seconds - machine_.ssd_latency_s, seconds / 10);
  if (!(transfer > 0) || bytes <= 0) return;
  machine_.ssd_write += kSsdWeight * (static_cast<double>(bytes) / transfer - machine_.ssd_write);
}

void CostModel::set_ssd(double read_bytes_s, double write_bytes_s, double latency_s) {
  machine_.ssd_read = read_bytes_s;
  machine_.ssd_write = write_bytes_s;
  machine_.ssd_latency_s = latency_s;
}

CostReport CostModel::report() const {
  CostReport report;
  report.bandwidth_gb_s =
      rate(static_cast<double>(work_.weight_bytes), curve_[0] - machine_.overhead_s) / 1e9;
  report.gflops = rate(static_cast<double>(work_.flops_per_row), row_seconds()) / 1e9;
  report.ridge_rows = ridge_rows();
  report.decode_step_s = step_seconds({1, 1, 1, 1});
  report.row_s = row_seconds();
  report.ssd_read_gb_s = machine_.ssd_read / 1e9;
  report.ssd_write_gb_s = machine_.ssd_write / 1e9;
  report.steps = steps_;
  if (!errors_.empty()) {
    std::vector<float> errors = errors_;
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    report.error = *middle;
  }
  return report;
}

std::string CostModel::to_text() const {
  std::string text(kHeader);
  char number[32];
  const auto put = [&](double value) {
    std::snprintf(number, sizeof(number), "\n%.9g", value);
    text += number;
  };
  for (const double value : squares_.factors()) put(value);
  for (const double value : prior_) put(value);
  for (const double value : {machine_.ssd_read, machine_.ssd_write, machine_.ssd_latency_s})
    put(value);
  return text + "\n";
}

bool CostModel::restore(std::string_view text) {
  if (!text.starts_with(kHeader)) return false;
  text.remove_prefix(kHeader.size());
  std::vector<double> values;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(line.size());
    if (line.empty()) continue;
    char* end = nullptr;
    const double value = std::strtod(line.c_str(), &end);
    if (*end != '\0' || !std::isfinite(value) || value < 0) return false;
    values.push_back(value);
  }
  if (values.size() != 2 * kFeatures + 3) return false;
  // Factors multiply the prior that they were learnt with.
  std::vector<double> factors(values.begin(), values.begin() + kFeatures);
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (prior_[i] > 0) factors[i] *= values[kFeatures + i] / prior_[i];
  }
  squares_.restore(std::move(factors));
  set_ssd(values[2 * kFeatures], values[2 * kFeatures + 1], values[2 * kFeatures + 2]);
  refresh_curve();
  return true;
}

}  // namespace bodega::cost
