#include "cost/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace bodega::cost {
namespace {

ModelWork small_model() {
  return {.weight_bytes = 60'000'000,
          .flops_per_row = 200'000'000,
          .head_bytes = 18'000'000,
          .flops_per_sampled_row = 56'000'000,
          .kv_bytes_per_token = 23'040,
          .flops_per_kv_token = 69'120,
          .block_bytes = 368'640};
}

MachineProfile machine() { return *find_machine("two-cores"); }

// A machine that is not as its profile says: other rates, a kink at 8 rows, 5 % noise, and one step
// in thirty delayed by another program.
class RealMachine {
 public:
  double seconds(const StepShape& shape) {
    double s = 0.0004 + 0.0022 + 0.0009 * std::min(shape.rows, 8) +
               0.00075 * std::max(0, shape.rows - 8) + 2.4e-6 * static_cast<double>(shape.kv_pairs);
    if (shape.sampled_rows > 0) s += 0.001 + 0.0004 * shape.sampled_rows;
    s *= noise_(random_);
    return random_() % 30 == 0 ? 4 * s : s;
  }
  StepShape any_shape() {
    StepShape shape;
    const int decodes = static_cast<int>(random_() % 12);
    for (int i = 0; i < decodes; ++i) shape.add_rows(static_cast<int>(random_() % 1000), 1);
    if (random_() % 2 == 0 || decodes == 0) {
      shape.add_rows(static_cast<int>(random_() % 2000), 1 + static_cast<int>(random_() % 300));
    }
    shape.sampled_rows = decodes;
    return shape;
  }

 private:
  std::mt19937 random_{7};
  std::normal_distribution<double> noise_{1.0, 0.05};
};

TEST(CostModel, PredictsWithin15PercentAfter200Steps) {
  CostModel model(machine(), small_model());
  RealMachine real;
  for (int i = 0; i < 600; ++i) {
    const StepShape shape = real.any_shape();
    model.observe_step(shape, real.seconds(shape));
  }
  EXPECT_EQ(model.report().steps, 600U);
  EXPECT_LT(model.report().error, 0.10);  // of the last 256
}

TEST(CostModel, AStepIsReadingPlusArithmeticBeyondTheRidge) {
  const CostModel model(machine(), small_model());
  const double read = 60e6 / 30e9;
  const double row = 200e6 / 120e9;
  EXPECT_NEAR(model.step_seconds({1, 0, 0, 0}), 150e-6 + read, 1e-6);
  EXPECT_NEAR(model.step_seconds({256, 0, 0, 0}), 150e-6 + 256 * row, 1e-6);
  EXPECT_NEAR(model.row_seconds(), row, 1e-9);
  EXPECT_NEAR(model.ridge_rows(), read / row, 1e-6);
  EXPECT_NEAR(model.step_seconds({100'000, 0, 0, 0}), 100'000 * row, 0.01);
}

TEST(CostModel, MoreWorkNeverCostsLess) {
  CostModel model(machine(), small_model());
  RealMachine real;
  for (int i = 0; i < 300; ++i) {
    const StepShape shape = real.any_shape();
    model.observe_step(shape, real.seconds(shape) * (1 + i % 7));
  }
  for (int rows = 1; rows < 5000; ++rows) {
    ASSERT_LE(model.step_seconds({rows, 0, 0, 0}), model.step_seconds({rows + 1, 0, 0, 0})) << rows;
  }
}

TEST(CostModel, TheChunkIsTheLongestWithinTheBudget) {
  const CostModel model(machine(), small_model());
  StepShape step;
  for (int i = 0; i < 8; ++i) step.add_rows(500, 1);
  step.sampled_rows = 8;
  const double plain = model.step_seconds(step);
  EXPECT_EQ(model.longest_chunk(step, 0, plain, 512), 0);
  EXPECT_EQ(model.longest_chunk(step, 0, 1e9, 512), 512);
  for (const int position : {0, 4000}) {
    const int chunk = model.longest_chunk(step, position, 2.2 * plain, 512);
    ASSERT_GT(chunk, 0);
    ASSERT_LT(chunk, 512);
    EXPECT_LE(model.step_seconds(step.with_rows(position, chunk)), 2.2 * plain);
    EXPECT_GT(model.step_seconds(step.with_rows(position, chunk + 1)), 2.2 * plain);
  }
  EXPECT_LT(model.longest_chunk(step, 4000, 2.2 * plain, 512),
            model.longest_chunk(step, 0, 2.2 * plain, 512));
}

TEST(CostModel, WhatWasLearntSurvivesAsText) {
  CostModel model(machine(), small_model());
  RealMachine real;
  for (int i = 0; i < 300; ++i) {
    const StepShape shape = real.any_shape();
    model.observe_step(shape, real.seconds(shape));
  }
  model.set_ssd(2e9, 1e9, 1e-4);
  MachineProfile measured_anew = machine();
  measured_anew.bandwidth *= 1.5;
  CostModel later(measured_anew, small_model());
  ASSERT_TRUE(later.restore(model.to_text()));
  for (int rows : {1, 5, 30, 200}) {
    const StepShape shape{rows, 1, rows * 100, rows * 100};
    EXPECT_NEAR(later.step_seconds(shape) / model.step_seconds(shape), 1.0, 0.01) << rows;
  }
  EXPECT_DOUBLE_EQ(later.reload_seconds(1 << 20), model.reload_seconds(1 << 20));
}

TEST(CostModel, ABadTextChangesNothing) {
  CostModel model(machine(), small_model());
  const std::string good = model.to_text();
  const double before = model.step_seconds({1, 1, 1, 1});
  for (const std::string& bad :
       {std::string(), std::string("bodega-cost 2"), good.substr(0, good.size() / 2), good + "1\n",
        good.substr(0, 16) + "\nnan" + good.substr(18), std::string("bodega-cost 1\n-1\n")}) {
    EXPECT_FALSE(model.restore(bad)) << bad;
  }
  EXPECT_DOUBLE_EQ(model.step_seconds({1, 1, 1, 1}), before);
}

TEST(CostModel, TheSsdIsPricedByWhatItDid) {
  CostModel model(machine(), small_model());
  const std::int64_t bytes = std::int64_t{4} << 20;
  for (int i = 0; i < 100; ++i) model.observe_read(bytes, 0.0002 + 0.002);
  EXPECT_NEAR(model.reload_seconds(bytes), 0.0022, 0.0002);
  for (int i = 0; i < 100; ++i) model.observe_write(bytes, 0.0002 + 0.040);
  EXPECT_NEAR(model.spill_seconds(bytes), 0.0402, 0.003);
}

TEST(CostModel, KnownMachinesHaveTheirNames) {
  EXPECT_TRUE(find_machine("m3-ultra"));
  EXPECT_FALSE(find_machine("abacus"));
  for (const MachineProfile& known : known_machines()) {
    EXPECT_GT(known.bandwidth, 0) << known.name;
    EXPECT_GT(known.flops, 0) << known.name;
    EXPECT_TRUE(known.has_ssd()) << known.name;
  }
}

}  // namespace
}  // namespace bodega::cost
