// The start-up check tries every kind of record on a small plan; here on the CPU's kernels.
#include "ops/self_check.h"

#include <gtest/gtest.h>

#include "random_weights.h"

namespace bodega::ops {
namespace {

namespace mx = mlx::core;

WeightSourcePtr weights(const WeightFormat& format, int rows, int cols) {
  return std::make_shared<RandomWeights>(format, RandomWeights::Shape{rows, cols}, 1);
}

// One record of every kind and epilogue.
Plan make_plan(const WeightFormat& format) {
  PlanBuilder b;
  constexpr int kHidden = 256;
  const SlotId x = b.slot("x", kHidden);
  const SlotId qkv = b.slot("qkv", 256);
  const SlotId heads = b.slot("heads", 128);
  const SlotId inner = b.slot("inner", 256);
  const AttentionShape shape{4, 2, 32};
  b.kv_group({1, 2, 32});
  const Norm norm{b.vector("norm", std::vector<float>(kHidden, 1.0F)), 1e-5F, 0.5F};
  const VectorId bias = b.vector("bias", std::vector<float>(2 * kHidden, 0.5F));
  const VectorId frequencies = b.vector("inv_freq", std::vector<float>(8, 0.1F));
  b.add(Embed{b.matrix("table", weights(format, 90, kHidden)), x});
  b.add(QuantLinear{
      x, norm, b.matrix("qkv", weights(format, 256, kHidden)), {}, Epilogue::kStore, qkv});
  b.add(RopeAndCacheWrite{qkv, shape, 16, true, frequencies});
  b.add(PagedAttention{qkv, heads, shape, 0.2F, 7, 4.0F, b.vector("sinks", {1, 2, 3, 4})});
  b.add(QuantLinear{
      heads, {}, b.matrix("o", weights(format, kHidden, 128)), {}, Epilogue::kResidual, x});
  for (const Epilogue gated : {Epilogue::kSwiGlu, Epilogue::kGeGlu}) {
    b.add(QuantLinear{x, norm, b.matrix("up", weights(format, 512, kHidden)), bias, gated, inner});
  }
  b.add(LmHead{x, norm, b.matrix("head", weights(format, 90, kHidden)), {}, 9.0F, 0.5F});
  return b.finish(kHidden, 90, 64);
}

const WeightFormat kFormats[] = {
    {WeightFormat::Kind::kAffine, 4, 64, FloatType::kF16},
    {WeightFormat::Kind::kAffine, 8, 32, FloatType::kBF16},
    {WeightFormat::Kind::kDense, 0, 0, FloatType::kF16},
    {WeightFormat::Kind::kMxfp4, 4, 32, FloatType::kF32},
};

TEST(SelfCheck, RightKernelsPass) {
  for (const WeightFormat& format : kFormats) {
    const Plan plan = make_plan(format);
    for (std::size_t i = 0; i < plan.records.size(); ++i) {
      EXPECT_EQ("", self_check(plan, i, mx::Device::cpu)) << format.name() << " record " << i;
    }
  }
}

TEST(SelfCheck, ADifferenceBeyondTheToleranceIsTold) {
  const Plan plan = make_plan(kFormats[0]);
  EXPECT_NE("", self_check(plan, 1, mx::Device::cpu, 1e-12));
  EXPECT_NE("", self_check(plan, 3, mx::Device::cpu, 1e-12));
}

TEST(SelfCheck, OnlyRecordsWithKernelsAreTried) {
  const Plan plan = make_plan(kFormats[0]);
  std::vector<bool> has_kernel(plan.records.size(), true);
  has_kernel[2] = false;
  const std::vector<std::string> all = self_check_all(plan, mx::Device::cpu, has_kernel);
  EXPECT_EQ(std::vector<std::string>(plan.records.size()), all);
}

}  // namespace
}  // namespace bodega::ops
