#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/packed_matrix.h"

// One call each of the CPU kernels on made-up numbers: what the benchmark times and the instruction
// counts count.
namespace bodega::ops::cpu {

struct alignas(64) Line {
  unsigned char bytes[64];
};

// Codes that cost nothing to make; the kernels do not look at them.
class Pattern : public WeightSource {
 public:
  Pattern(int bits, int rows, int cols)
      : WeightSource({WeightFormat::Kind::kAffine, bits, 32, FloatType::kF16}, rows, cols) {}
  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const int mask = (1 << format().bits) - 1;
    for (int i = 0; i < count * cols(); ++i)
      codes[i] = static_cast<std::uint8_t>((i * 7 + row) & mask);
    for (int i = 0; i < count * cols() / 32; ++i) {
      scales[i] = 0.01F;
      biases[i] = -0.05F;
    }
  }
};

// All tiles of a [4608, 1536] matrix with `rows` rows of activations.
class LinearCase {
 public:
  static constexpr int kCols = 1536;
  static constexpr int kOutputs = 576 * 8;

  LinearCase(const Kernels& kernels, int bits, int rows, bool fast)
      : kernels_(kernels),
        rows_(rows),
        pool_(1),
        w_(Pattern(bits, kOutputs, kCols), kernels, {.fast = fast}, pool_),
        groups_(static_cast<std::size_t>(padded_rows(rows)) * kCols / kGroup),
        q_(groups_ * 16, 1),
        scale_(groups_, 1.0F),
        sum_(groups_, 1.0F),
        isum_(groups_, 1),
        out_(static_cast<std::size_t>(rows) * 2 * kernels.lanes),
        scratch_(kScratchBytes / sizeof(Line)) {}

  void run() {
    const QuantizedRows x{q_.data(), scale_.data(),        sum_.data(),          isum_.data(),
                          kCols,     interleave_of(rows_), w_.view().activations};
    for (int tile = 0; tile < w_.tiles(); tile += 2) {
      kernels_.linear(w_.view(), tile, tile + 1, x, rows_, out_.data(), scratch_.data());
    }
  }
  double products() const { return static_cast<double>(rows_) * kOutputs * kCols; }
  double weight_bytes() const { return static_cast<double>(w_.bytes()); }

 private:
  const Kernels& kernels_;
  int rows_;
  ThreadPool pool_;
  PackedMatrix w_;
  std::size_t groups_;
  std::vector<std::int32_t> q_;
  std::vector<float> scale_, sum_;
  std::vector<std::int32_t> isum_;
  std::vector<float> out_;
  std::vector<Line> scratch_;
};

// `rows` (token, head) pairs over 1,024 keys of 64 dimensions.
class AttentionCase {
 public:
  static constexpr int kTokens = 1024;
  static constexpr int kDim = 64;

  AttentionCase(const Kernels& kernels, int rows)
      : kernels_(kernels),
        slab_(std::size_t{kTokens} * kDim * 2, 0x3000),
        q_(static_cast<std::size_t>(rows) * kDim, 0.5F),
        values_(q_.size()),
        scratch_(kScratchBytes / sizeof(Line)) {
    for (int b = 0; b < kTokens / core::kBlockTokens; ++b) blocks_.push_back({0, b});
    rows_.count = rows;
    rows_.scale = 0.125F;
    for (int r = 0; r < rows; ++r) {
      rows_.q[r] = q_.data() + r * kDim;
      rows_.position[r] = kTokens - 1;
      states_[r].values = values_.data() + r * kDim;
    }
  }

  void run() {
    constexpr int kHead = core::kBlockTokens * kDim;
    const std::uint16_t* slabs[] = {slab_.data()};
    const KvView kv{slabs, blocks_.data(), 2 * kHead, 0, kHead, kDim};
    kernels_.attend(kv, rows_, 0, states_, scratch_.data());
  }
  double products() const { return 2.0 * rows_.count * kTokens * kDim; }

 private:
  const Kernels& kernels_;
  std::vector<std::uint16_t> slab_;
  std::vector<core::BlockRef> blocks_;
  std::vector<float> q_, values_;
  AttentionRows rows_;
  AttentionState states_[kAttentionRows];
  std::vector<Line> scratch_;
};

}  // namespace bodega::ops::cpu
