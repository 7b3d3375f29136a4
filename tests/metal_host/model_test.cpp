// The Metal backend's host code and kernels together: a small model, step by step, against the
// twins.
#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/thread_pool.h"
#include "model_kernels.h"
#include "ops/executor.h"
#include "ops/metal/kernel_sources.h"
#include "ops/metal/step.h"
#include "unit/ops/random_weights.h"

namespace metal_host {
namespace {

namespace mx = mlx::core;
using bodega::ThreadPool;
using bodega::core::Batch;
using bodega::core::BlockRef;
using bodega::core::SequenceSlice;
using namespace bodega::ops;

constexpr int kHidden = 128;
constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 64;
constexpr int kInner = 192;
constexpr int kVocab = 100;
constexpr int kLayers = 2;
constexpr int kSlabBlocks = 8;
constexpr int kQkvCols = (kHeads + 2 * kKvHeads) * kHeadDim;

WeightSourcePtr weights(int rows, int cols, unsigned seed) {
  const WeightFormat format{WeightFormat::Kind::kAffine, 4, 64, FloatType::kF16};
  return std::make_shared<RandomWeights>(format, RandomWeights::Shape{rows, cols}, seed, true);
}

// Norm, q k v with biases, rotary with head norms, attention with sinks, output, gated unit: twice.
Plan make_plan() {
  PlanBuilder b;
  const SlotId x = b.slot("x", kHidden);
  const SlotId qkv = b.slot("qkv", kQkvCols);
  const SlotId heads = b.slot("heads", kHeads * kHeadDim);
  const SlotId inner = b.slot("inner", kInner);
  const AttentionShape shape{kHeads, kKvHeads, kHeadDim};
  const int group = b.kv_group({kLayers, kKvHeads, kHeadDim});
  const MatrixId table = b.matrix("table", weights(kVocab, kHidden, 1));
  std::vector<float> frequencies;
  for (int i = 0; i < kHeadDim / 2; ++i)
    frequencies.push_back(std::pow(1e4F, -2.0F * i / kHeadDim));
  const VectorId inv_freq = b.vector("inv_freq", frequencies);
  auto norm = [&](int size, unsigned seed) {
    std::vector<float> values = random_floats(size, seed, 0.1F);
    for (float& v : values) v += 0.05F;  // small weights: random codes are large
    return Norm{b.vector("norm", values), 1e-5F, 0.0F};
  };
  b.add(Embed{table, x, 0.02F});
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    const unsigned seed = 10 * (layer + 1);
    const KvLayer kv{group, static_cast<int>(layer)};
    QuantLinear in{x, norm(kHidden, seed), b.matrix("qkv", weights(kQkvCols, kHidden, seed + 1))};
    in.bias = b.vector("bias", random_floats(kQkvCols, seed + 2));
    in.out = qkv;
    b.add(in);
    RopeAndCacheWrite rope{qkv, shape, kHeadDim, false, inv_freq};
    if (layer == 1) rope.q_norm = norm(kHeadDim, seed + 3);
    rope.kv = kv;
    b.add(rope);
    PagedAttention attention{qkv, heads, shape, 0.125F, layer == 0 ? 0 : 20};
    if (layer == 1) attention.sinks = b.vector("sinks", random_floats(kHeads, seed + 4));
    attention.kv = kv;
    b.add(attention);
    QuantLinear output{heads, {}, b.matrix("o", weights(kHidden, kHeads * kHeadDim, seed + 5))};
    output.epilogue = Epilogue::kResidual;
    output.out = x;
    b.add(output);
    QuantLinear up{x, norm(kHidden, seed + 6),
                   b.matrix("gate_up", weights(2 * kInner, kHidden, seed + 7))};
    up.epilogue = Epilogue::kSwiGlu;
    up.out = inner;
    b.add(up);
    QuantLinear down{inner, {}, b.matrix("down", weights(kHidden, kInner, seed + 8))};
    down.epilogue = Epilogue::kResidual;
    down.out = x;
    b.add(down);
  }
  LmHead head{x, norm(kHidden, 99), table};
  head.soft_cap = 30.0F;
  b.add(head);
  return b.finish(kHidden, kVocab, 512);
}

// One step: rows of sequences at given positions. Sequence s owns blocks 8 s .. 8 s + 7.
Batch make_batch(const std::vector<std::array<int, 3>>& slices) {  // sequence, position, rows
  Batch batch;
  for (const auto& [sequence, position, rows] : slices) {
    SequenceSlice slice{batch.rows(), rows, position, static_cast<int>(batch.blocks.size()), 8};
    for (int b = 0; b < 8; ++b) {
      const int block = sequence * 8 + b;
      batch.blocks.push_back({block / kSlabBlocks, block % kSlabBlocks});
    }
    for (int i = 0; i < rows; ++i) {
      batch.tokens.push_back((sequence * 31 + (position + i) * 7) % kVocab);
    }
    batch.sampled_rows.push_back(batch.rows() - 1);
    batch.sequences.push_back(slice);
  }
  return batch;
}

class HostModel {
 public:
  explicit HostModel(bool wide_inputs = false)
      : plan_(make_plan()), pool_(1), state_(gpu_, plan_, wide_inputs) {
    add_model_kernels(gpu_);
    for (std::size_t id = 0; id < plan_.matrices.size(); ++id) {
      bool pair = false;
      for (const Record& record : plan_.records) {
        const auto* r = std::get_if<QuantLinear>(&record);
        pair = pair || (r != nullptr && r->weight == static_cast<MatrixId>(id) &&
                        r->epilogue == Epilogue::kSwiGlu);
      }
      state_.load(static_cast<MatrixId>(id), pair, pool_);
    }
    for (int i = 0; i < metal::kMaxSlabs; ++i) {
      slabs_.push_back(gpu_.allocate(plan_.kv_groups[0].block_bytes() * kSlabBlocks));
    }
  }

  std::vector<float> step(const Batch& batch) {
    std::vector<metal::Memory*> slabs;
    for (const auto& slab : slabs_) slabs.push_back(slab.get());
    const std::size_t size = batch.sampled_rows.size() * kVocab;
    const auto logits = gpu_.allocate(size * sizeof(float));
    state_.bind(batch, 0, plan_.records.size(),
                std::vector<metal::Memory*>(plan_.slots.size(), nullptr), slabs, logits.get());
    for (const Record& record : plan_.records) {
      EXPECT_TRUE(metal::has_kernel(record, plan_));
      metal::run_record(state_, record);
    }
    std::vector<float> values(size);
    std::memcpy(values.data(), logits->data(), size * sizeof(float));
    return values;
  }

 private:
  Plan plan_;
  HostGpu gpu_;
  ThreadPool pool_;
  metal::StepState state_;
  std::vector<std::unique_ptr<metal::Memory>> slabs_;
};

const std::vector<Batch>& steps() {
  static const std::vector<Batch> all = {
      make_batch({{0, 0, 37}}),                         // a prompt
      make_batch({{0, 37, 1}, {1, 0, 5}}),              // a decode row beside another prompt
      make_batch({{0, 38, 4}, {1, 5, 1}, {2, 0, 12}}),  // a verify window, a decode row, a chunk
      make_batch({{2, 12, 20}, {0, 42, 1}, {1, 6, 1}}),
  };
  return all;
}

// Largest distance from the twins' logits over all steps, relative to the largest of a step.
double distance_from_twins(bool wide_inputs) {
  ExecutorOptions options;
  options.reference = true;
  options.kv_bytes = std::int64_t{1} << 20;
  Executor twin(make_plan(), mx::Device::cpu, options);
  HostModel model(wide_inputs);
  double largest = 0;
  for (const Batch& batch : steps()) {
    Batch same = batch;  // the twin's pool has one slab
    for (std::size_t i = 0; i < same.blocks.size(); ++i) {
      same.blocks[i] = twin.pool().ref(batch.blocks[i].slab * kSlabBlocks + batch.blocks[i].offset);
    }
    mx::array want = twin.step(same);
    mx::eval(want);
    const std::vector<float> got = model.step(batch);
    const float* exact = want.data<float>();
    double distance = 0;
    double size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      distance = std::max(distance, std::fabs(double{got[i]} - exact[i]));
      size = std::max(size, std::fabs(double{exact[i]}));
    }
    EXPECT_GT(size, 0.1);
    largest = std::max(largest, distance / size);
  }
  return largest;
}

TEST(MetalModel, AgreesWithTheTwins) {
  // What fp16 inputs cost, and what is left without them: keys and values are fp16 on both sides.
  EXPECT_LT(distance_from_twins(false), 4e-3);
  EXPECT_LT(distance_from_twins(true), 2e-4);
}

TEST(MetalModel, AnswersDoNotDependOnWhatRunsBeside) {
  HostModel together;
  std::vector<std::vector<float>> mixed;
  for (const Batch& batch : steps()) mixed.push_back(together.step(batch));
  // Sequence 0 alone, its prompt in three chunks, its verify window row by row.
  HostModel alone;
  alone.step(make_batch({{0, 0, 16}}));
  alone.step(make_batch({{0, 16, 1}}));
  std::vector<std::vector<float>> single;
  single.push_back(alone.step(make_batch({{0, 17, 20}})));
  single.push_back(alone.step(make_batch({{0, 37, 1}})));
  for (int p = 38; p < 42; ++p) {
    const std::vector<float> row = alone.step(make_batch({{0, p, 1}}));
    if (p == 41) single.push_back(row);
  }
  single.push_back(alone.step(make_batch({{0, 42, 1}})));
  for (std::size_t i = 0; i < single.size(); ++i) {
    const std::size_t at = i == 3 ? kVocab : 0;  // its place among the last step's sampled rows
    EXPECT_EQ(0, std::memcmp(single[i].data(), mixed[i].data() + at, kVocab * sizeof(float)))
        << "step " << i;
  }
}

TEST(MetalSources, AreInTheBinary) {
  for (const char* name : {"common.metal", "params.h", "embed.metal", "quant_linear.metal",
                           "rope_and_cache_write.metal", "paged_attention.metal"}) {
    std::ifstream file(std::string(BODEGA_SOURCE_DIR) + "/src/ops/metal/kernels/" + name);
    std::stringstream text;
    text << file.rdbuf();
    const std::string stem(name, std::strchr(name, '.'));
    EXPECT_GT(text.str().size(), 100U) << name;
    EXPECT_EQ(text.str(), metal::kernel_source(stem)) << name;
  }
  EXPECT_EQ("", metal::kernel_source("other"));
}

}  // namespace
}  // namespace metal_host
