#include "ops/reference/weights.h"

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"

namespace bodega::ops::reference {
namespace {

namespace mx = mlx::core;

constexpr int kRowsAtOnce = 256;

// [rows, cols] fp32, filled a few rows at a time.
template <class Read>
mx::array read_values(int rows, int cols, Read read) {
  std::vector<float> values(static_cast<std::size_t>(rows) * cols);
  for (int row = 0; row < rows; row += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, rows - row);
    read(row, count, values.data() + static_cast<std::size_t>(row) * cols);
  }
  return mx::array(values.data(), mx::Shape{rows, cols}, mx::float32);
}

bool mlx_packs(const WeightFormat& f) {
  return f.kind == WeightFormat::Kind::kAffine && f.group_size >= 32 && f.bits >= 2;
}

}  // namespace

Weights::Weights(const Plan& plan, mx::Device device, const Backend* backend)
    : plan_(plan), device_(device), backend_(backend), stored_(plan.matrices.size()) {}

void Weights::load(MatrixId id) {
  const Matrix& matrix = plan_.matrices[id];
  const bool packed = device_ != mx::Device::cpu && mlx_packs(matrix.format);
  stored_[id] = packed ? load_packed(matrix) : load_dense(matrix);
  if (packed && !packed_agrees(*stored_[id], matrix.format)) {
    const WeightFormat& f = matrix.format;
    stored_[id] = {mx::astype(mx::dequantize(stored_[id]->weight, *stored_[id]->scales,
                                             stored_[id]->biases, f.group_size, f.bits),
                              mx::float16),
                   std::nullopt, std::nullopt};
  }
  std::vector<mx::array> arrays{stored_[id]->weight};
  if (stored_[id]->scales)
    arrays.insert(arrays.end(), {*stored_[id]->scales, *stored_[id]->biases});
  mx::eval(arrays);
}

Weights::Stored Weights::load_dense(const Matrix& matrix) const {
  mx::array values = read_values(matrix.rows, matrix.cols, [&](int row, int count, float* out) {
    matrix.source->read_values(row, count, out);
  });
  // A GPU holds 16-bit weights as such: widening them would double the memory.
  if (device_ != mx::Device::cpu && matrix.format.type == FloatType::kF16) {
    values = mx::astype(values, mx::float16);
  }
  if (device_ != mx::Device::cpu && matrix.format.type == FloatType::kBF16) {
    values = mx::astype(values, mx::bfloat16);
  }
  return {values, std::nullopt, std::nullopt};
}

Weights::Stored Weights::load_packed(const Matrix& matrix) const {
  const int bits = matrix.format.bits;
  const int groups = matrix.cols / matrix.format.group_size;
  const int words = matrix.cols * bits / 32;
  std::vector<std::uint32_t> packed(static_cast<std::size_t>(matrix.rows) * words, 0);
  std::vector<float> scales(static_cast<std::size_t>(matrix.rows) * groups);
  std::vector<float> biases(scales.size());
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(kRowsAtOnce) * matrix.cols);
  for (int row = 0; row < matrix.rows; row += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, matrix.rows - row);
    const std::size_t at = static_cast<std::size_t>(row) * groups;
    matrix.source->read_codes(row, count, codes.data(), scales.data() + at, biases.data() + at);
    for (int r = 0; r < count; ++r) {
      std::uint32_t* out = packed.data() + static_cast<std::size_t>(row + r) * words;
      for (int k = 0; k < matrix.cols; ++k) {  // little-endian bit stream along the row
        const std::uint64_t code = codes[static_cast<std::size_t>(r) * matrix.cols + k];
        const int bit = k * bits;
        const std::uint64_t shifted = code << (bit % 32);
        out[bit / 32] |= static_cast<std::uint32_t>(shifted);
        if (bit % 32 + bits > 32) out[bit / 32 + 1] |= static_cast<std::uint32_t>(shifted >> 32U);
      }
    }
  }
  return {mx::array(packed.data(), mx::Shape{matrix.rows, words}, mx::uint32),
          mx::array(scales.data(), mx::Shape{matrix.rows, groups}, mx::float32),
          mx::array(biases.data(), mx::Shape{matrix.rows, groups}, mx::float32)};
}

// MLX's quantised product is not right for every shape on every device (0.32.4 on an H200: fp32
// with one group of 64 a row), so each shape is compared with a dense product before it is trusted.
bool Weights::packed_agrees(const Stored& stored, const WeightFormat& f) {
  const std::string key = f.name() + std::to_string(stored.scales->shape(0)) + "x" +
                          std::to_string(stored.scales->shape(1));
  if (const auto known = packed_agrees_.find(key); known != packed_agrees_.end())
    return known->second;
  const mx::array dense =
      mx::dequantize(stored.weight, *stored.scales, stored.biases, f.group_size, f.bits);
  bool agrees = true;
  for (int rows : {1, 25}) {
    const mx::array x = mx::random::normal({rows, dense.shape(1)}, mx::float32);
    const mx::array got = mx::quantized_matmul(x, stored.weight, *stored.scales, stored.biases,
                                               true, f.group_size, f.bits);
    const mx::array want = mx::matmul(x, mx::transpose(dense));
    mx::array close = mx::less(mx::max(mx::abs(mx::subtract(got, want))),
                               mx::multiply(mx::array(1e-3F), mx::max(mx::abs(want))));
    mx::eval(close);
    agrees = agrees && close.item<bool>();
  }
  if (!agrees) {
    log_warn("MLX's quantised product is wrong for this shape here; widened to fp16",
             {{"shape", key}});
  }
  return packed_agrees_[key] = agrees;
}

// For self-checks: the kernels' own copy, widened for the moment.
Weights::Stored Weights::borrowed(MatrixId id) const {
  const Matrix& matrix = plan_.matrices[id];
  return {read_values(
              matrix.rows, matrix.cols,
              [&](int row, int count, float* out) { backend_->read_rows(id, row, count, out); }),
          std::nullopt, std::nullopt};
}

mx::array Weights::multiply(const mx::array& x, MatrixId id) const {
  const Stored stored = stored_[id] ? *stored_[id] : borrowed(id);
  if (stored.scales) {
    const WeightFormat& f = plan_.matrices[id].format;
    return mx::quantized_matmul(x, stored.weight, *stored.scales, stored.biases, true, f.group_size,
                                f.bits);
  }
  const mx::array in = mx::astype(x, stored.weight.dtype());
  return mx::astype(mx::matmul(in, mx::transpose(stored.weight)), mx::float32);
}

mx::array Weights::take(const mx::array& rows, MatrixId id) const {
  const Stored stored = stored_[id] ? *stored_[id] : borrowed(id);
  if (!stored.scales) return mx::astype(mx::take(stored.weight, rows, 0), mx::float32);
  const WeightFormat& f = plan_.matrices[id].format;
  return mx::dequantize(mx::take(stored.weight, rows, 0), mx::take(*stored.scales, rows, 0),
                        mx::take(*stored.biases, rows, 0), f.group_size, f.bits);
}

mx::array Weights::vector(VectorId id) const {
  const std::vector<float>& values = plan_.vectors[id].values;
  return mx::array(values.data(), mx::Shape{static_cast<int>(values.size())}, mx::float32);
}

}  // namespace bodega::ops::reference
