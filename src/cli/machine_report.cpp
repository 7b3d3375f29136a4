#include "cli/machine_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/bytes.h"

namespace bodega::cli {
namespace {

constexpr double kSlowShareOfBandwidth = 0.5;

struct Worst {
  int records = 0;
  double error = 0;
};

std::map<std::string, Worst> worst_by_operation(const std::vector<ops::RecordCheck>& checks) {
  std::map<std::string, Worst> worst;
  for (const ops::RecordCheck& check : checks) {
    Worst& entry = worst[check.operation];
    ++entry.records;
    entry.error = std::max(entry.error, check.relative_error);
  }
  return worst;
}

double rounded(double value) { return std::round(value * 100) / 100; }

}  // namespace

double MachineReport::decode_gb_s() const {
  const auto bytes = static_cast<double>(probe.work.weight_bytes + probe.work.head_bytes);
  return bytes / probe.one_row_s / 1e9;
}

double MachineReport::gflops() const {
  const double flops = static_cast<double>(probe.work.flops_per_row) * probe.many_rows +
                       static_cast<double>(probe.work.flops_per_sampled_row);
  return flops / probe.many_rows_s / 1e9;
}

// Seconds to read the weights once, over seconds of arithmetic that one more row costs.
double MachineReport::ridge_rows() const {
  const double read_s = static_cast<double>(probe.work.weight_bytes) / (bandwidth_gb_s * 1e9);
  const double row_s = static_cast<double>(probe.work.flops_per_row) / (gflops() * 1e9);
  return read_s / row_s;
}

bool MachineReport::healthy() const {
  return std::all_of(probe.checks.begin(), probe.checks.end(), [](const ops::RecordCheck& check) {
    return check.relative_error <= kWorstRelativeError;
  });
}

std::vector<std::string> MachineReport::advice() const {
  std::vector<std::string> advice;
  if (!healthy()) advice.push_back("A kernel disagrees with its twin: answers cannot be trusted.");
  if (!probe.exact) {
    advice.push_back(
        "Some operations have no kernel here and run as stock MLX operations: slower, and equal "
        "only within a tolerance.");
  }
  if (probe.kernels.find("scalar") != std::string::npos) {
    advice.push_back("This CPU has no vector kernels here: everything is slow.");
  }
  if (cgroup_cores && *cgroup_cores < usable_cores) {
    advice.push_back(fmt::format("A quota leaves {:.1f} of {} cores: threads beyond it only wait.",
                                 *cgroup_cores, usable_cores));
  }
  if (decode_gb_s() < kSlowShareOfBandwidth * bandwidth_gb_s) {
    advice.push_back(fmt::format(
        "Decode reads weights at {:.0f} % of the memory's bandwidth: a small model pays for its "
        "steps' overhead, or other programs use the cores.",
        100 * decode_gb_s() / bandwidth_gb_s));
  }
  return advice;
}

std::string to_text(const MachineReport& report) {
  std::string out = fmt::format(
      "device      {}{}\n"
      "threads     {} of {} usable cores{}\n"
      "memory      {} of {} free\n"
      "bandwidth   {:.1f} GB/s read by {} threads\n"
      "model       {}\n"
      "decode      {:.2f} ms a step of one row: weights at {:.1f} GB/s\n"
      "prefill     {:.2f} ms a step of {} rows: {:.1f} GFLOP/s\n"
      "ridge       {:.1f} rows: fewer are bound by bandwidth, more by arithmetic\n"
      "prices      a step of one row {:.2f} ms, one more row {:.3f} ms; off by {:.0f} % in {} "
      "mixed "
      "steps (median)\n",
      report.probe.kernels, report.probe.exact ? ", exact" : "", report.threads,
      report.usable_cores,
      report.cgroup_cores ? fmt::format(" (quota {:.1f})", *report.cgroup_cores) : "",
      format_bytes(report.free_bytes), format_bytes(report.memory_bytes), report.bandwidth_gb_s,
      report.threads, report.model, report.probe.one_row_s * 1e3, report.decode_gb_s(),
      report.probe.many_rows_s * 1e3, report.probe.many_rows, report.gflops(), report.ridge_rows(),
      report.probe.prices.decode_step_s * 1e3, report.probe.prices.row_s * 1e3,
      report.probe.prices.error * 100, report.probe.prices.steps);
  if (report.disk) {
    out += fmt::format(
        "ssd         {:.2f} GB/s read, {:.2f} GB/s written, {:.0f} us to the first byte (cache "
        "folder, past the page cache)\n",
        report.disk->read / 1e9, report.disk->write / 1e9, report.disk->latency_s * 1e6);
  }
  out += "kernels     each against its twin of stock MLX operations\n";
  for (const auto& [operation, worst] : worst_by_operation(report.probe.checks)) {
    const char* verdict = worst.error <= kWorstRelativeError ? "ok" : "WRONG";
    out += fmt::format("  {:<5} {:<22} {:>3} records, worst relative error {:.1e}\n", verdict,
                       operation, worst.records, worst.error);
  }
  for (const std::string& sentence : report.advice()) out += "note        " + sentence + "\n";
  return out;
}

boost::json::object to_json(const MachineReport& report) {
  boost::json::object checks;
  for (const auto& [operation, worst] : worst_by_operation(report.probe.checks)) {
    checks[operation] = {{"records", worst.records}, {"worst_relative_error", worst.error}};
  }
  const std::vector<std::string> advice = report.advice();
  boost::json::object out{{"kernels", report.probe.kernels},
                          {"exact", report.probe.exact},
                          {"threads", report.threads},
                          {"usable_cores", report.usable_cores},
                          {"memory_bytes", report.memory_bytes},
                          {"free_bytes", report.free_bytes},
                          {"bandwidth_gb_s", rounded(report.bandwidth_gb_s)},
                          {"model", report.model},
                          {"decode_step_ms", rounded(report.probe.one_row_s * 1e3)},
                          {"decode_gb_s", rounded(report.decode_gb_s())},
                          {"prefill_rows", report.probe.many_rows},
                          {"prefill_step_ms", rounded(report.probe.many_rows_s * 1e3)},
                          {"gflops", rounded(report.gflops())},
                          {"ridge_rows", rounded(report.ridge_rows())},
                          {"prices",
                           {{"decode_step_ms", rounded(report.probe.prices.decode_step_s * 1e3)},
                            {"row_ms", rounded(report.probe.prices.row_s * 1e3)},
                            {"ridge_rows", rounded(report.probe.prices.ridge_rows)},
                            {"prediction_error", rounded(report.probe.prices.error)},
                            {"steps", report.probe.prices.steps}}},
                          {"healthy", report.healthy()},
                          {"checks", std::move(checks)},
                          {"notes", boost::json::array(advice.begin(), advice.end())}};
  if (report.disk) {
    out["ssd"] = {{"read_gb_s", rounded(report.disk->read / 1e9)},
                  {"write_gb_s", rounded(report.disk->write / 1e9)},
                  {"latency_us", rounded(report.disk->latency_s * 1e6)}};
  }
  return out;
}

}  // namespace bodega::cli
