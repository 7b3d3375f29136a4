#include "engine/calibrate.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "engine/timed_step.h"

namespace bodega::engine {
namespace {

constexpr double kBudgetS = 1.2;
constexpr int kRepeats = 3;
constexpr int kSays = 3;  // a median of several steps counts as so many

struct Case {
  int position;
  int rows;
};
// Short ones first: when time runs out, the long ones are guessed from them.
constexpr Case kCases[] = {{0, 1}, {0, 4}, {0, 16},  {0, 64}, {496, 1},
                           {0, 2}, {0, 8}, {0, 128}, {0, 256}};

struct Measured {
  cost::StepShape shape;
  double seconds = 0;
};

std::vector<Measured> measure(Runner& runner) {
  std::vector<Measured> measured;
  const Stopwatch total;
  for (const Case& c : kCases) {
    if (core::blocks_for(c.position + c.rows) > runner.block_count()) continue;
    const double last = measured.empty() ? 0 : measured.back().seconds;
    const double share =
        measured.empty() ? 1 : static_cast<double>(c.rows) / measured.back().shape.rows;
    if (total.seconds() + kRepeats * last * share > kBudgetS) continue;
    const core::Batch batch = one_sequence(runner, c.position, c.rows);
    if (measured.empty())
      median_step(runner, batch, kRepeats);  // the first steps also load and compile
    Measured m;
    m.shape.add_rows(c.position, c.rows);
    m.shape.sampled_rows = 1;
    m.seconds = median_step(runner, batch, kRepeats);
    measured.push_back(m);
  }
  return measured;
}

}  // namespace

cost::ModelWork work_of(const ops::Plan& plan) {
  const ops::StepWork work = plan.work();
  cost::ModelWork out{work.weight_bytes,          work.flops_per_row,      work.head_bytes,
                      work.flops_per_sampled_row, work.kv_bytes_per_token, work.flops_per_kv_token};
  for (const ops::KvLayout& group : plan.kv_groups) out.block_bytes += group.block_bytes();
  return out;
}

cost::MachineProfile guessed_machine() {
  cost::MachineProfile machine;
  machine.name = "this machine";
  machine.bandwidth = 20e9;
  machine.flops = 100e9;
  machine.overhead_s = 1e-4;
  return machine;
}

cost::CostModel calibrate(Runner& runner, const cost::ModelWork& work) {
  const std::vector<Measured> measured = measure(runner);
  cost::MachineProfile machine = guessed_machine();
  if (!measured.empty()) {
    const auto [fewest, most] = std::minmax_element(
        measured.begin(), measured.end(),
        [](const auto& a, const auto& b) { return a.shape.rows < b.shape.rows; });
    machine.bandwidth = static_cast<double>(work.weight_bytes + work.head_bytes) / fewest->seconds;
    machine.flops = static_cast<double>(work.flops_per_row) * most->shape.rows / most->seconds;
    machine.overhead_s = std::min(machine.overhead_s, fewest->seconds / 10);
  }
  cost::CostModel prices(machine, work);
  for (int i = 0; i < kSays; ++i) {
    for (const Measured& m : measured) prices.observe_step(m.shape, m.seconds, true);
  }
  return prices;
}

}  // namespace bodega::engine
