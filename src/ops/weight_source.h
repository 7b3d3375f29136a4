#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bodega::ops {

enum class FloatType { kF32, kF16, kBF16 };

// How the numbers of a matrix are written. Affine: w = scale * q + bias per group along a row
// (mlx.core.quantize, "affine"); fp modes: w = scale * table[q], OCP MX / NVFP4.
struct WeightFormat {
  enum class Kind { kDense, kAffine, kMxfp4, kMxfp8, kNvfp4 };
  Kind kind = Kind::kDense;
  int bits = 0;                      // affine: 1-6 and 8
  int group_size = 0;                // affine: 16, 32, 64, 128
  FloatType type = FloatType::kF32;  // dense: of the values; affine: of scales and biases

  bool operator==(const WeightFormat&) const = default;
  bool quantized() const { return kind != Kind::kDense; }
  std::string name() const;                                       // "affine 4-bit g32", "f16"
  std::size_t bytes(std::int64_t rows, std::int64_t cols) const;  // as stored, scales included
};

// The numbers that the codes of an fp mode stand for before scaling: 16 of FP4 E2M1 or 256 of FP8
// E4M3 (OCP); null for the other kinds.
const float* code_values(WeightFormat::Kind kind);

// A [rows, cols] matrix that lies in a checkpoint, read a few rows at a time in one canonical form
// so that a device can repack it without a second copy. Thread-safe for concurrent reads.
class WeightSource {
 public:
  WeightSource(WeightFormat format, int rows, int cols)
      : format_(format), rows_(rows), cols_(cols) {}
  virtual ~WeightSource() = default;

  const WeightFormat& format() const { return format_; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }

  // Quantized formats: codes [count, cols], one byte a value; scales and biases
  // [count, cols / group_size] (biases untouched by the fp modes).
  virtual void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                          float* biases) const;
  // Any format, dequantized in fp32: values [count, cols].
  virtual void read_values(int row, int count, float* values) const;

 private:
  WeightFormat format_;
  int rows_;
  int cols_;
};

using WeightSourcePtr = std::shared_ptr<const WeightSource>;

// Rows of several sources of one format and width, one below the other (q, k and v as one matrix).
// Throws kInternal for unlike ones: compare format() first where files may mix them.
WeightSourcePtr concat_rows(std::vector<WeightSourcePtr> parts);
// Row i of the result is row order[i] of the source (rotary pairs, interleaved gate and up).
WeightSourcePtr reorder_rows(WeightSourcePtr source, std::vector<std::int32_t> order);

}  // namespace bodega::ops
