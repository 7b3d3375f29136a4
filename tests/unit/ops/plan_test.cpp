#include "ops/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "random_weights.h"

namespace bodega::ops {
namespace {

constexpr WeightFormat kFour{WeightFormat::Kind::kAffine, 4, 32, FloatType::kF16};

WeightSourcePtr weights(int rows, int cols) {
  return std::make_shared<RandomWeights>(kFour, RandomWeights::Shape{rows, cols}, 1);
}

// embed, one linear layer of `rows` outputs into a slot of `slot_cols`, lm_head
Plan tiny(int rows, int slot_cols, Epilogue epilogue) {
  PlanBuilder plan;
  const MatrixId table = plan.matrix("embed", weights(128, 64));
  const SlotId x = plan.slot("x", 64);
  const SlotId y = plan.slot("y", slot_cols);
  plan.kv_group({1, 1, 16});
  plan.add(Embed{table, x});
  QuantLinear linear{x, {}, plan.matrix("w", weights(rows, 64))};
  linear.epilogue = epilogue;
  linear.out = y;
  plan.add(linear);
  plan.add(LmHead{x, {}, table});
  return plan.finish(64, 128, 256);
}

TEST(Plan, CountsTheBytesAndOperationsOfAStep) {
  const StepWork work = tiny(96, 96, Epilogue::kStore).work();
  EXPECT_EQ(96 * 64 / 2 + 96 * 2 * 4, work.weight_bytes);  // codes, then scale and bias a group
  EXPECT_EQ(2 * 96 * 64, work.flops_per_row);
  EXPECT_EQ(2 * 128 * 64, work.flops_per_sampled_row);
}

TEST(Plan, RefusesRecordsThatDoNotFit) {
  EXPECT_NO_THROW(tiny(96, 48, Epilogue::kSwiGlu));
  EXPECT_THROW(tiny(96, 64, Epilogue::kStore), Error);
  EXPECT_THROW(tiny(192, 64, Epilogue::kSwiGlu), Error);
}

TEST(Plan, DescribesEveryRecord) {
  const std::string text = tiny(96, 96, Epilogue::kStore).describe();
  EXPECT_THAT(text, testing::HasSubstr("embed [128, 64] affine 4-bit"));
  EXPECT_THAT(text, testing::HasSubstr("lm_head"));
}

TEST(KvLayout, PlacesHeadsOneBehindTheOther) {
  const KvLayout layout{3, 2, 64};
  EXPECT_EQ(3 * 2 * 2 * 16 * 64, layout.block_elements());
  EXPECT_EQ(0, layout.head_offset(0, 0, 0));
  EXPECT_EQ(16 * 64, layout.head_offset(0, 0, 1));
  EXPECT_EQ(2 * 16 * 64, layout.head_offset(0, 1, 0));
  EXPECT_EQ(4 * 16 * 64, layout.head_offset(1, 0, 0));
}

}  // namespace
}  // namespace bodega::ops
