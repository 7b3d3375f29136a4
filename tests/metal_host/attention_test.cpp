// paged_attention, fold_splits and rope_and_cache_write for every head size, against sums in
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "attention_variants.h"
#include "ops/metal/step_tables.h"
#include "unit/ops/random_weights.h"

namespace metal_host {
namespace {

using bodega::core::Batch;
using bodega::core::BlockRef;
using bodega::core::SequenceSlice;
using bodega::ops::AttentionShape;
using bodega::ops::random_floats;
using msl::half;

struct Setting {
  int heads = 6;
  int kv_heads = 2;
  int window = 0;
  float soft_cap = 0;
  bool sinks = false;
};

// A pool of four slabs with two layers; tests use the second.
class Pool {
 public:
  Pool(int kv_heads, int head_dim, int blocks)
      : kv_heads_(kv_heads),
        dim_(head_dim),
        slabs_{slab(blocks), slab(blocks), slab(blocks), slab(blocks)} {}

  int block_elements() const { return 2 * layer_elements(); }
  int k_offset() const { return layer_elements(); }
  int v_offset() const { return layer_elements() + kv_heads_ * 16 * dim_; }
  msl::Slabs& slabs() { return slabs_; }
  // Keys lie by dimension, values by token.
  half& key(BlockRef ref, int head, int token, int d) {
    return at(ref, k_offset() + (head * dim_ + d) * 16 + token);
  }
  half& value(BlockRef ref, int head, int token, int d) {
    return at(ref, v_offset() + (head * 16 + token) * dim_ + d);
  }

 private:
  half& at(BlockRef ref, int element) {
    return slabs_[ref.slab]
        .values()[static_cast<std::size_t>(ref.offset) * block_elements() + element];
  }
  int layer_elements() const { return 2 * kv_heads_ * 16 * dim_; }
  // NaN everywhere: whatever is multiplied without having been written shows.
  Buffer<half> slab(int blocks) const {
    return {"slab",
            std::vector<half>(static_cast<std::size_t>(blocks) * 2 * layer_elements(), half(NAN))};
  }
  int kv_heads_;
  int dim_;
  msl::Slabs slabs_;
};

struct Span {  // a slice of a batch
  int rows;
  int position;
};

// Sequences side by side, their blocks shuffled over the slabs.
Batch make_batch(const std::vector<Span>& runs, int blocks_a_slab) {
  Batch batch;
  std::vector<int> free(4 * blocks_a_slab);
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), std::mt19937(5));
  for (const Span& run : runs) {
    SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = run.rows;
    slice.position = run.position;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count = bodega::core::blocks_for(run.position + run.rows);
    for (int b = 0; b < slice.block_count; ++b) {
      batch.blocks.push_back({free.back() % 4, free.back() / 4});
      free.pop_back();
    }
    batch.sequences.push_back(slice);
    batch.tokens.resize(batch.tokens.size() + run.rows);
  }
  return batch;
}

template <class K>
class Attention : public testing::Test {
 protected:
  static constexpr int kDim = K::kHeadDim;
  static constexpr int kBlocks = 24;  // a slab

  // Keys and values of the sequence that starts with `seed`, the same whatever batch it is in.
  static float stored(int seed, int kv, int head, int token, int d) {
    auto x = static_cast<std::uint32_t>((((seed * 2 + kv) * 7 + head) * 4099 + token) * 257 + d);
    x = (x ^ (x >> 16U)) * 0x7FEB352DU;
    x = (x ^ (x >> 15U)) * 0x846CA68BU;
    const auto value = static_cast<float>((x ^ (x >> 16U)) % 2001);
    return static_cast<float>(half((value - 1000.0F) / 700.0F));
  }

  struct Case {
    Setting setting;
    std::vector<Span> runs;
    std::vector<int> seeds;  // of each sequence
  };

  static std::vector<float> queries(const Case& c, int stride) {
    std::vector<float> all;
    for (std::size_t i = 0; i < c.runs.size(); ++i) {
      for (int r = 0; r < c.runs[i].rows; ++r) {
        const auto row = random_floats(
            stride, static_cast<unsigned>(c.seeds[i] * 10007 + c.runs[i].position + r), 1.5F);
        all.insert(all.end(), row.begin(), row.end());
      }
    }
    return all;
  }

  // out [rows, heads * head_dim]
  static std::vector<float> run(const Case& c) {
    const Setting& s = c.setting;
    const int stride = (s.heads + 2 * s.kv_heads) * kDim;
    const int out_stride = s.heads * kDim;
    const Batch batch = make_batch(c.runs, kBlocks);
    Pool pool(s.kv_heads, kDim, kBlocks);
    for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
      const SequenceSlice& slice = batch.sequences[i];
      for (int t = 0; t < slice.position + slice.row_count; ++t) {
        for (int h = 0; h < s.kv_heads; ++h) {
          for (int d = 0; d < kDim; ++d) {
            const auto ref = batch.blocks[slice.block_begin + t / 16];
            pool.key(ref, h, t % 16, d) = half(stored(c.seeds[i], 0, h, t, d));
            pool.value(ref, h, t % 16, d) = half(stored(c.seeds[i], 1, h, t, d));
          }
        }
      }
    }
    const auto work = bodega::ops::metal::attention_work(
        batch, AttentionShape{s.heads, s.kv_heads, kDim}, s.window);
    const std::size_t states = static_cast<std::size_t>(work.partials) * s.heads;
    msl::AttentionBuffers buffers{
        {"qkv", queries(c, stride)},
        {"items", work.items},
        {"folds", work.folds},
        {"blocks", bodega::ops::metal::block_places(batch)},
        {"sinks", random_floats(s.heads, 8)},
        pool.slabs(),
        {"out", std::vector<float>(static_cast<std::size_t>(batch.rows()) * out_stride, NAN)},
        {"partial_values", states * kDim},
        {"partial_state", states}};
    const msl::AttentionParams p{s.heads,         s.kv_heads,      stride,
                                 out_stride,      scale(),         s.soft_cap,
                                 s.window,        s.sinks ? 1 : 0, pool.block_elements(),
                                 pool.k_offset(), pool.v_offset()};
    K::attend(p, buffers);
    return buffers.out.values();
  }

  static float scale() { return 1.0F / std::sqrt(static_cast<float>(kDim)); }

  static std::vector<double> want(const Case& c, std::size_t sequence, int row, int head) {
    const Setting& s = c.setting;
    const int position = c.runs[sequence].position + row;
    const int stride = (s.heads + 2 * s.kv_heads) * kDim;
    const std::vector<float> q =
        random_floats(stride, static_cast<unsigned>(c.seeds[sequence] * 10007 + position), 1.5F);
    const float sink = random_floats(s.heads, 8)[head];
    const int kv_head = head / (s.heads / s.kv_heads);
    const int first = s.window > 0 ? std::max(0, position - s.window + 1) : 0;
    std::vector<double> scores;
    double top = s.sinks ? double{sink} : -1e300;
    for (int t = first; t <= position; ++t) {
      double dot = 0;
      for (int d = 0; d < kDim; ++d) {
        dot += double{q[head * kDim + d]} * stored(c.seeds[sequence], 0, kv_head, t, d);
      }
      dot *= scale();
      if (s.soft_cap > 0) dot = s.soft_cap * std::tanh(dot / s.soft_cap);
      scores.push_back(dot);
      top = std::max(top, dot);
    }
    double sum = s.sinks ? std::exp(sink - top) : 0;
    std::vector<double> out(kDim);
    for (int t = first; t <= position; ++t) {
      const double e = std::exp(scores[t - first] - top);
      sum += e;
      for (int d = 0; d < kDim; ++d) out[d] += e * stored(c.seeds[sequence], 1, kv_head, t, d);
    }
    for (double& v : out) v /= sum;
    return out;
  }

  // `out` [heads, head_dim] of one row.
  static void expect_row(const Case& c, std::size_t sequence, int row, const float* out) {
    for (int head = 0; head < c.setting.heads; head += 2) {
      const std::vector<double> exact = want(c, sequence, row, head);
      for (int d = 0; d < kDim; ++d) {
        ASSERT_NEAR(exact[d], out[head * kDim + d], 3e-5)
            << "sequence " << sequence << " row " << row << " head " << head << " window "
            << c.setting.window;
      }
    }
  }
};

using Sizes = testing::Types<msl::d32::Kernels, msl::d64::Kernels, msl::d96::Kernels,
                             msl::d128::Kernels, msl::d256::Kernels>;
TYPED_TEST_SUITE(Attention, Sizes);

TYPED_TEST(Attention, MatchesSumsInDouble) {
  const Setting settings[] = {{6, 2, 0, 0, false},
                              {4, 4, 0, 0, true},
                              {16, 1, 0, 5.0F, false},
                              {3, 1, 70, 0, false},
                              {9, 3, 64, 3.0F, true}};
  for (const Setting& s : settings) {
    // A decode row, a chunk from the start, one across a split, the edges of blocks and pieces.
    const typename TestFixture::Case c{
        s, {{1, 0}, {5, 0}, {1, 15}, {2, 63}, {1, 300}, {3, 511}}, {1, 2, 3, 4, 5, 6}};
    const std::vector<float> out = TestFixture::run(c);
    int row = 0;
    for (std::size_t i = 0; i < c.runs.size(); ++i) {
      for (int r = 0; r < c.runs[i].rows; ++r, ++row) {
        TestFixture::expect_row(c, i, r, out.data() + row * s.heads * TypeParam::kHeadDim);
      }
    }
  }
}

TYPED_TEST(Attention, SplitsFoldedApartAreSplitsFoldedTogether) {
  // A row alone is worked on split by split; as the last of a verify window in one go.
  const Setting s{4, 2, 0, 0, true};
  const int position = 1100;
  const auto alone = TestFixture::run({s, {{1, position}}, {1}});
  const auto window = TestFixture::run({s, {{3, position - 2}}, {1}});
  const std::size_t row = static_cast<std::size_t>(s.heads) * TypeParam::kHeadDim;
  ASSERT_EQ(0, std::memcmp(alone.data(), window.data() + 2 * row, row * sizeof(float)));
}

TYPED_TEST(Attention, ARowNeverDependsOnItsNeighbours) {
  const Setting s{6, 2, 90, 0, false};
  const std::vector<Span> runs{{4, 37}, {1, 200}, {7, 0}, {1, 63}};
  const std::vector<int> seeds{1, 2, 3, 4};
  const auto together = TestFixture::run({s, runs, seeds});
  const std::size_t row = static_cast<std::size_t>(s.heads) * TypeParam::kHeadDim;
  std::size_t at = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (int r = 0; r < runs[i].rows; ++r, ++at) {
      const auto alone = TestFixture::run({s, {{1, runs[i].position + r}}, {seeds[i]}});
      ASSERT_EQ(0, std::memcmp(alone.data(), together.data() + at * row, row * sizeof(float)))
          << "sequence " << i << " row " << r;
    }
  }
}

// What a head becomes, in double.
struct Turn {
  int half;
  bool interleaved;
  int position;
  const std::vector<float>& inv_freq;
};
void turn(std::vector<double>& x, const Turn& t) {
  for (int j = 0; j < t.half; ++j) {
    const int a = t.interleaved ? 2 * j : j;
    const int b = t.interleaved ? 2 * j + 1 : j + t.half;
    const double angle = double{static_cast<float>(t.position) * t.inv_freq[j]};
    const double c = 1.25 * std::cos(angle);
    const double s = 1.25 * std::sin(angle);
    const double turned = x[a] * c - x[b] * s;
    x[b] = x[b] * c + x[a] * s;
    x[a] = turned;
  }
}
void normalise(std::vector<double>& x, const std::vector<float>& weight, double eps,
               double offset) {
  double squares = 0;
  for (double v : x) squares += v * v;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (std::size_t d = 0; d < x.size(); ++d) x[d] *= scale * (weight[d] + offset);
}

template <class K>
class Rope : public testing::Test {
 protected:
  static constexpr int kDim = K::kHeadDim;
  static constexpr int kHeads = 5;
  static constexpr int kKvHeads = 2;
  static constexpr int kStride = (kHeads + 2 * kKvHeads) * kDim;

  // Rotates a batch and looks at every head of every row.
  static void check(bool interleaved, int half_dim, bool norm) {
    const Batch batch = make_batch({{3, 14}, {1, 40}, {20, 0}}, 20);
    Pool pool(kKvHeads, kDim, 20);
    std::vector<float> inv_freq(std::max(1, half_dim));
    for (int i = 0; i < half_dim; ++i) inv_freq[i] = std::pow(10000.0F, -1.0F * i / half_dim);
    const std::size_t size = static_cast<std::size_t>(batch.rows()) * kStride;
    msl::RopeBuffers buffers{{"qkv", random_floats(size, 3)},
                             {"inv_freq", inv_freq},
                             {"q_norm", random_floats(kDim, 4)},
                             {"k_norm", random_floats(kDim, 5)},
                             {"places", bodega::ops::metal::row_places(batch)},
                             {"blocks", bodega::ops::metal::block_places(batch)},
                             pool.slabs()};
    const std::vector<float> before = buffers.qkv.values();
    const int normed = norm ? 1 : 0;
    const msl::RopeParams p{kHeads,          kKvHeads,       half_dim, interleaved ? 1 : 0,
                            1.25F,           normed,         normed,   1e-5F,
                            1e-6F,           0.0F,           1.0F,     pool.block_elements(),
                            pool.k_offset(), pool.v_offset()};
    K::turn(p, static_cast<unsigned>(batch.rows()), buffers);
    for (const SequenceSlice& slice : batch.sequences) {
      for (int i = 0; i < slice.row_count; ++i) {
        const Turn t{half_dim, interleaved, slice.position + i, inv_freq};
        const BlockRef ref = batch.blocks[slice.block_begin + t.position / 16];
        for (int h = 0; h < kHeads + 2 * kKvHeads; ++h) {
          const std::size_t at = static_cast<std::size_t>(slice.row_begin + i) * kStride + h * kDim;
          const std::vector<double> x(before.begin() + at, before.begin() + at + kDim);
          expect_head(x, h, norm, t, buffers, at);
          if (h >= kHeads) expect_stored(buffers.qkv.values().data() + at, h, t, pool, ref);
        }
      }
    }
  }

  static void expect_head(std::vector<double> x, int head, bool norm, const Turn& t,
                          const msl::RopeBuffers& buffers, std::size_t at) {
    const bool query = head < kHeads;
    if (head < kHeads + kKvHeads) {
      if (norm && query) normalise(x, buffers.q_norm.values(), 1e-5, 0.0);
      if (norm && !query) normalise(x, buffers.k_norm.values(), 1e-6, 1.0);
      turn(x, t);
    }
    for (int d = 0; d < kDim; ++d) {
      ASSERT_NEAR(x[d], buffers.qkv.values()[at + d], 1e-5) << "head " << head;
    }
  }
  static void expect_stored(const float* row, int head, const Turn& t, Pool& pool, BlockRef ref) {
    const bool value = head >= kHeads + kKvHeads;
    const int kv_head = head - kHeads - (value ? kKvHeads : 0);
    const int token = t.position % 16;
    for (int d = 0; d < kDim; ++d) {
      const half got =
          value ? pool.value(ref, kv_head, token, d) : pool.key(ref, kv_head, token, d);
      ASSERT_EQ(half(row[d]).bits(), got.bits());
    }
  }
};
TYPED_TEST_SUITE(Rope, Sizes);

TYPED_TEST(Rope, RotatesAndWritesTheCache) {
  for (const bool interleaved : {false, true}) {
    for (const int half_dim : {0, TypeParam::kHeadDim / 4, TypeParam::kHeadDim / 2}) {
      TestFixture::check(interleaved, half_dim, false);
      TestFixture::check(interleaved, half_dim, true);
    }
  }
}

}  // namespace
}  // namespace metal_host
