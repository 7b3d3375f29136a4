// Paged attention of every instruction set against plain sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "base/half.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/packed_matrix.h"
#include "random_weights.h"

namespace bodega::ops::cpu {
namespace {

struct alignas(64) Line {
  unsigned char bytes[64];
};

struct Setting {
  int head_dim = 64;
  int window = 0;
  float soft_cap = 0;
  bool sink = false;
};

// Keys and values of one head in shuffled blocks of two slabs.
class Cache {
 public:
  Cache(int tokens, int head_dim) : tokens_(tokens), dim_(head_dim) {
    const int blocks = (tokens + 15) / 16;
    keys_ = random_floats(static_cast<std::size_t>(tokens) * dim_, 11);
    values_ = random_floats(static_cast<std::size_t>(tokens) * dim_, 12);
    for (auto& slab : slabs_) slab.assign(static_cast<std::size_t>(blocks) * block_elements(), 0);
    std::vector<int> order(blocks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    for (int b = 0; b < blocks; ++b) refs_.push_back({order[b] % 2, order[b]});
    for (int t = 0; t < tokens; ++t) {
      std::uint16_t* block = slabs_[refs_[t / 16].slab].data() +
                             static_cast<std::size_t>(refs_[t / 16].offset) * block_elements();
      for (int d = 0; d < dim_; ++d) {
        const std::size_t at = static_cast<std::size_t>(t) * dim_ + d;
        std::uint16_t& key = block[d * 16 + t % 16];
        std::uint16_t& value = block[16 * dim_ + t % 16 * dim_ + d];
        key = float_to_half(keys_[at]);
        value = float_to_half(values_[at]);
        keys_[at] = half_to_float(key);
        values_[at] = half_to_float(value);
      }
    }
    for (int i = 0; i < 2; ++i) pointers_[i] = slabs_[i].data();
  }

  KvView view() const {
    return {pointers_, refs_.data(), block_elements(), 0, std::int64_t{16} * dim_, dim_};
  }
  const float* key(int t) const { return keys_.data() + static_cast<std::size_t>(t) * dim_; }
  const float* value(int t) const { return values_.data() + static_cast<std::size_t>(t) * dim_; }

 private:
  std::int64_t block_elements() const { return std::int64_t{32} * dim_; }
  int tokens_;
  int dim_;
  std::vector<float> keys_, values_;
  std::vector<std::uint16_t> slabs_[2];
  const std::uint16_t* pointers_[2] = {};
  std::vector<core::BlockRef> refs_;
};

class AttentionKernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kernels_ = find_kernels(GetParam());
    if (kernels_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }

  // out [rows, head_dim], all rows in one call, splits in order.
  std::vector<float> attend(const Cache& cache, const Setting& s, const std::vector<float>& q,
                            const std::vector<int>& positions) const {
    AttentionRows rows;
    rows.count = static_cast<int>(positions.size());
    rows.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
    rows.soft_cap = s.soft_cap;
    rows.window = s.window;
    std::vector<float> values(static_cast<std::size_t>(rows.count) * s.head_dim);
    std::vector<float> piece_values(values.size());
    AttentionState state[kAttentionRows];
    AttentionState piece[kAttentionRows];
    int last = 0;
    for (int r = 0; r < rows.count; ++r) {
      rows.q[r] = q.data() + static_cast<std::size_t>(r) * s.head_dim;
      rows.position[r] = positions[r];
      last = std::max(last, positions[r]);
      state[r].values = values.data() + static_cast<std::size_t>(r) * s.head_dim;
      piece[r].values = piece_values.data() + static_cast<std::size_t>(r) * s.head_dim;
    }
    std::vector<Line> scratch(kScratchBytes / sizeof(Line));
    kernels_->attend(cache.view(), rows, 0, state, scratch.data());
    for (int split = 1; split <= last / kAttentionSplit; ++split) {
      kernels_->attend(cache.view(), rows, split, piece, scratch.data());
      for (int r = 0; r < rows.count; ++r) kernels_->fold(state[r], piece[r], s.head_dim);
    }
    std::vector<float> out(values.size());
    for (int r = 0; r < rows.count; ++r) {
      kernels_->finish(state[r], s.sink ? &kSink : nullptr, s.head_dim,
                       out.data() + static_cast<std::size_t>(r) * s.head_dim);
    }
    return out;
  }

  static std::vector<double> want(const Cache& cache, const Setting& s, const float* q,
                                  int position) {
    const int first = s.window > 0 ? std::max(0, position - s.window + 1) : 0;
    std::vector<double> scores;
    double top = s.sink ? double{kSink} : -1e300;
    for (int t = first; t <= position; ++t) {
      double dot = 0;
      for (int d = 0; d < s.head_dim; ++d) dot += double{q[d]} * cache.key(t)[d];
      dot /= std::sqrt(double(s.head_dim));
      if (s.soft_cap > 0) dot = s.soft_cap * std::tanh(dot / s.soft_cap);
      scores.push_back(dot);
      top = std::max(top, dot);
    }
    double sum = s.sink ? std::exp(kSink - top) : 0;
    std::vector<double> out(s.head_dim);
    for (int t = first; t <= position; ++t) {
      const double e = std::exp(scores[t - first] - top);
      sum += e;
      for (int d = 0; d < s.head_dim; ++d) out[d] += e * cache.value(t)[d];
    }
    for (double& v : out) v /= sum;
    return out;
  }

  static constexpr float kSink = 1.25F;
  const Kernels* kernels_ = nullptr;
};

TEST_P(AttentionKernels, MatchesSumsInDouble) {
  const Setting settings[] = {{64, 0, 0, false},   {128, 0, 0, false},   {16, 0, 0, false},
                              {80, 100, 0, false}, {64, 0, 5.0F, false}, {64, 0, 0, true},
                              {64, 70, 3.0F, true}};
  for (const Setting& s : settings) {
    const Cache cache(2600, s.head_dim);
    const std::vector<int> positions{0, 1, 15, 16, 63, 64, 200, 1023, 1024, 1100, 2047, 2599};
    const std::vector<float> q = random_floats(positions.size() * s.head_dim, 21, 2.0F);
    const std::vector<float> out = attend(cache, s, q, positions);
    for (std::size_t r = 0; r < positions.size(); ++r) {
      const std::vector<double> exact = want(cache, s, q.data() + r * s.head_dim, positions[r]);
      for (int d = 0; d < s.head_dim; ++d) {
        ASSERT_NEAR(exact[d], out[r * s.head_dim + d], 2e-5)
            << "head_dim " << s.head_dim << " window " << s.window << " position " << positions[r];
      }
    }
  }
}

TEST_P(AttentionKernels, ARowNeverDependsOnItsNeighbours) {
  const Setting s{64, 900, 0, false};
  const Cache cache(2600, 64);
  std::vector<int> positions;
  for (int p = 0; p < kAttentionRows; ++p) positions.push_back(p * 53 % 2600);
  const std::vector<float> q = random_floats(positions.size() * 64, 22);
  const std::vector<float> together = attend(cache, s, q, positions);
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const std::vector<float> one(q.begin() + r * 64, q.begin() + (r + 1) * 64);
    const std::vector<float> alone = attend(cache, s, one, {positions[r]});
    ASSERT_EQ(0, std::memcmp(alone.data(), together.data() + r * 64, 64 * sizeof(float))) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernels,
                         testing::ValuesIn(kernel_names().begin(), kernel_names().end()));

}  // namespace
}  // namespace bodega::ops::cpu
