#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "ops/weight_source.h"

namespace bodega::ops {

// Random numbers in a given format, held in memory.
class RandomWeights : public WeightSource {
 public:
  struct Shape {
    int rows;
    int cols;
  };
  RandomWeights(WeightFormat format, Shape shape, unsigned seed, bool symmetric = false)
      : WeightSource(format, shape.rows, shape.cols) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const std::size_t size = static_cast<std::size_t>(shape.rows) * shape.cols;
    if (!format.quantized()) {
      for (std::size_t i = 0; i < size; ++i)
        values_.push_back(round_to(normal(random), format.type));
      return;
    }
    const int top = (1 << format.bits) - 1;
    for (std::size_t i = 0; i < size; ++i) {
      const auto code = static_cast<std::uint8_t>(random() % (top + 1));
      const bool nan = format.kind == WeightFormat::Kind::kMxfp8 && (code & 127) == 127;
      codes_.push_back(nan ? 0 : code);
    }
    for (std::size_t i = 0; i < size / format.group_size; ++i) {
      if (format.kind != WeightFormat::Kind::kAffine) {  // E8M0 and E4M3
        const unsigned mantissa = format.kind == WeightFormat::Kind::kNvfp4 ? random() % 8 : 0;
        const auto eighths = static_cast<float>(8 + mantissa);
        scales_.push_back(std::ldexp(eighths, -4 - static_cast<int>(random() % 6)));
        biases_.push_back(0.0F);
        continue;
      }
      // Eight bits of mantissa fit every scale type.
      const float scale = static_cast<float>(1 + random() % 255) / 4096.0F;
      const float half = static_cast<float>(1 << (format.bits - 1));
      scales_.push_back(format.type == FloatType::kF32 ? scale * 1.0001F : scale);
      biases_.push_back(symmetric ? -half * scales_.back()
                                  : -static_cast<float>(random() % 255) / 64.0F);
    }
  }

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const std::size_t groups = cols() / format().group_size;
    std::copy_n(codes_.data() + std::size_t(row) * cols(), std::size_t(count) * cols(), codes);
    std::copy_n(scales_.data() + row * groups, count * groups, scales);
    std::copy_n(biases_.data() + row * groups, count * groups, biases);
  }

  void read_values(int row, int count, float* values) const override {
    if (format().quantized()) return WeightSource::read_values(row, count, values);
    std::copy_n(values_.data() + std::size_t(row) * cols(), std::size_t(count) * cols(), values);
  }

  std::vector<float> all() const {
    std::vector<float> values(static_cast<std::size_t>(rows()) * cols());
    read_values(0, rows(), values.data());
    return values;
  }

 private:
  static float round_to(float x, FloatType type) {  // to values that 16 bits hold
    const float step = type == FloatType::kF32 ? 0.0F : 1.0F / 64.0F;
    return step == 0.0F ? x : static_cast<float>(static_cast<int>(x / step) % 128) * step;
  }

  std::vector<std::uint8_t> codes_;
  std::vector<float> scales_, biases_, values_;
};

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

}  // namespace bodega::ops
