// The kernels of a GPU against their twins, and a row against itself in other company, over a table
// of shapes. Runs where BODEGA_TEST_DEVICE=gpu and a backend of ours is there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ops/cuda/driver.h"
#include "ops/executor.h"
#include "random_weights.h"

namespace bodega::ops {
namespace {

namespace mx = mlx::core;

bool on_gpu() {
  const char* device = std::getenv("BODEGA_TEST_DEVICE");
  return device != nullptr && std::string(device) == "gpu";
}

struct Shape {
  const char* name;
  int hidden;
  int intermediate;
  int heads;
  int kv_heads;
  int head_dim;
  int bits = 4;
  int group = 64;
  FloatType type = FloatType::kF16;
  bool qk_norm = false;
  bool bias = false;
  int window = 0;
  bool sinks = false;
  float soft_cap = 0.0F;
  Epilogue gate = Epilogue::kSwiGlu;
};

constexpr int kVocab = 391;

// One layer of the llama family, with what `s` adds to it.
Plan make_plan(const Shape& s) {
  PlanBuilder plan;
  unsigned seed = 1;
  auto matrix = [&](const char* name, int rows, int cols) {
    const WeightFormat format{WeightFormat::Kind::kAffine, s.bits, s.group, s.type};
    return plan.matrix(name, std::make_shared<RandomWeights>(
                                 format, RandomWeights::Shape{rows, cols}, seed++, true));
  };
  auto vector = [&](const char* name, int size, float scale) {
    return plan.vector(name, random_floats(size, seed++, scale));
  };
  const int width = s.heads * s.head_dim;
  const int qkv_width = width + 2 * s.kv_heads * s.head_dim;
  const SlotId x = plan.slot("x", s.hidden);
  const SlotId qkv = plan.slot("qkv", qkv_width);
  const SlotId attention = plan.slot("attention", width);
  const SlotId gated = plan.slot("gated", s.intermediate);
  const KvLayer kv{plan.kv_group({1, s.kv_heads, s.head_dim}), 0};
  const AttentionShape shape{s.heads, s.kv_heads, s.head_dim};
  const MatrixId table = matrix("table", kVocab, s.hidden);
  std::vector<float> frequencies(s.head_dim / 2);
  for (int i = 0; i < s.head_dim / 2; ++i) {
    frequencies[i] =
        std::pow(10000.0F, -2.0F * static_cast<float>(i) / static_cast<float>(s.head_dim));
  }
  plan.add(Embed{table, x, 0.5F});
  QuantLinear in{x, Norm{vector("n1", s.hidden, 1.0F)}, matrix("qkv", qkv_width, s.hidden)};
  if (s.bias) in.bias = vector("qkv bias", qkv_width, 1.0F);
  in.out = qkv;
  plan.add(in);
  RopeAndCacheWrite rope{qkv, shape, s.head_dim, false, plan.vector("f", frequencies)};
  if (s.qk_norm) {
    rope.q_norm = Norm{vector("qn", s.head_dim, 1.0F)};
    rope.k_norm = Norm{vector("kn", s.head_dim, 1.0F)};
  }
  rope.kv = kv;
  plan.add(rope);
  // Eight-bit random weights are 16 times larger: q k by that squared, or softmax would only
  // compare.
  PagedAttention attend{
      qkv, attention, shape,
      (s.bits == 8 ? 1.0F / 256.0F : 1.0F) / std::sqrt(static_cast<float>(s.head_dim))};
  attend.window = s.window;
  attend.soft_cap = s.soft_cap;
  if (s.sinks) attend.sinks = vector("sinks", s.heads, 1.0F);
  attend.kv = kv;
  plan.add(attend);
  QuantLinear out{attention, {}, matrix("o", s.hidden, width)};
  out.epilogue = Epilogue::kResidual;
  out.out = x;
  plan.add(out);
  QuantLinear up{x, Norm{vector("n2", s.hidden, 1.0F)}, matrix("up", 2 * s.intermediate, s.hidden)};
  if (s.bias) up.bias = vector("up bias", 2 * s.intermediate, 1.0F);
  up.epilogue = s.gate;
  up.out = gated;
  plan.add(up);
  QuantLinear down{gated, {}, matrix("down", s.hidden, s.intermediate)};
  down.epilogue = Epilogue::kResidual;
  down.out = x;
  plan.add(down);
  plan.add(LmHead{x, Norm{vector("n3", s.hidden, 1.0F)}, table});
  return plan.finish(s.hidden, kVocab, 4096);
}

class Batches {
 public:
  explicit Batches(KvPool& pool) : pool_(pool) {}

  // Sequence `id` owns every eighth block from its own on.
  void add(core::Batch& batch, int id, int rows, int position) const {
    core::SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = rows;
    slice.position = position;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count = core::blocks_for(position + rows);
    for (int b = 0; b < slice.block_count; ++b) batch.blocks.push_back(pool_.ref(b * 8 + id));
    for (int i = 0; i < rows; ++i) {
      batch.sampled_rows.push_back(batch.rows());
      batch.tokens.push_back((id * 131 + (position + i) * 37) % kVocab);
    }
    batch.sequences.push_back(slice);
  }

 private:
  KvPool& pool_;
};

std::vector<Shape> shapes() {
  Shape small{"small", 192, 320, 4, 2, 64};
  Shape g32 = small;
  g32.name = "group32";
  g32.group = 32;
  Shape eight = small;
  eight.name = "eight_bits";
  eight.bits = 8;
  eight.group = 32;
  Shape eight64 = small;
  eight64.name = "eight_bits_g64_bf16";
  eight64.bits = 8;
  eight64.type = FloatType::kBF16;
  Shape smollm{"smollm2", 576, 1536, 9, 3, 64, 4, 32};
  Shape wide{"head128_bf16", 512, 1408, 8, 2, 128, 4, 64, FloatType::kBF16, true};
  Shape g128{"group128_gqa16", 256, 512, 16, 1, 64, 4, 128, FloatType::kF16, false, true};
  Shape window = wide;
  window.name = "window_sinks";
  window.window = 70;
  window.sinks = true;
  Shape cap = wide;
  cap.name = "softcap_geglu";
  cap.soft_cap = 5.0F;
  cap.gate = Epilogue::kGeGlu;
  Shape ones{"gqa1", 128, 64, 2, 2, 64};
  return {small, g32, eight, eight64, smollm, wide, g128, window, cap, ones};
}

class DeviceRecords : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!on_gpu()) GTEST_SKIP() << "BODEGA_TEST_DEVICE is not gpu";
    ExecutorOptions options;
    options.kv_bytes = std::int64_t{64} << 20;
    executor_ = std::make_unique<Executor>(make_plan(GetParam()), mx::Device::gpu, options);
    if (!executor_->exact()) GTEST_SKIP() << "no kernels of ours: " << executor_->kernels();
  }

  std::vector<std::vector<float>> run(const core::Batch& batch) {
    mx::array logits = executor_->step(batch);
    mx::eval(logits);
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < batch.sampled_rows.size(); ++i) {
      const float* row = logits.data<float>() + i * kVocab;
      rows.emplace_back(row, row + kVocab);
    }
    return rows;
  }

  std::unique_ptr<Executor> executor_;
};

// The tolerance is that of fp16 inputs (2^-11) over one product.
TEST_P(DeviceRecords, AgreeWithTheirTwins) {
  const Batches batches(executor_->pool());
  const std::vector<std::vector<std::array<int, 3>>> steps = {
      {{0, 300, 0}, {1, 5, 0}, {2, 17, 0}},  // (sequence, rows, position)
      {{0, 1, 300}},
      {{0, 1, 301}, {1, 1, 5}, {2, 7, 17}},
      {{0, 1, 302}, {1, 12, 6}, {2, 3, 24}},
      {{0, 20, 303}, {1, 1, 18}},
      {{0, 40, 323}, {2, 20, 27}},
      {{0, 64, 363}, {1, 1, 19}, {2, 1, 47}},
  };
  for (const auto& step : steps) {
    core::Batch batch;
    for (const auto& [id, rows, position] : step) batches.add(batch, id, rows, position);
    for (const RecordCheck& check : executor_->check_records(batch)) {
      EXPECT_LT(check.relative_error, 3e-3)
          << check.index << " " << check.operation << ", " << batch.rows() << " rows";
    }
  }
}

TEST_P(DeviceRecords, RowsDoNotDependOnTheirCompany) {
  const Batches batches(executor_->pool());
  constexpr int kTokens = 330;
  core::Batch whole;
  batches.add(whole, 0, kTokens, 0);
  const auto want = run(whole);
  for (const int chunk : {1, 7, 16, 30, 63, 129}) {
    int neighbour = 0;
    for (int at = 0; at < kTokens; at += chunk) {
      const int count = std::min(chunk, kTokens - at);
      core::Batch batch;
      const int beside = chunk == 1 ? at % 20 : at % 3;
      if (beside > 0) batches.add(batch, 1, beside, neighbour);
      batches.add(batch, 0, count, at);
      const auto got = run(batch);
      neighbour = (neighbour + beside) % 300;
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(0,
                  std::memcmp(want[at + i].data(), got[beside + i].data(), kVocab * sizeof(float)))
            << "chunk " << chunk << " beside " << beside << ", row " << at + i;
      }
    }
  }
}

// Steps of changing size, some seen before and some not: buffers, graphs and pinned memory settle.
TEST_P(DeviceRecords, MemoryDoesNotGrowWithSteps) {
  const cuda::Driver* driver = cuda::Driver::find();
  if (driver == nullptr || std::string(GetParam().name) != "small") GTEST_SKIP();
  const Batches batches(executor_->pool());
  auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      core::Batch batch;
      for (int id = 0; id < 1 + i % 5; ++id) batches.add(batch, id, 1 + i * 7 % 3, i * 13 % 300);
      mx::array logits = executor_->to_host(executor_->step(batch));
      mx::eval(logits);
      ASSERT_TRUE(std::isfinite(logits.data<float>()[0]));
    }
  };
  steps(2000);
  mx::clear_cache();
  const std::size_t before = driver->free_bytes();
  steps(8000);
  mx::clear_cache();
  EXPECT_LT(before, driver->free_bytes() + (std::size_t{16} << 20));
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceRecords, testing::ValuesIn(shapes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace bodega::ops
