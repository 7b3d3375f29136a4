#include "ops/weight_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/errors.h"

namespace bodega::ops {
namespace {

using Kind = WeightFormat::Kind;

constexpr std::int64_t float_bytes(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

const char* float_name(FloatType type) {
  switch (type) {
    case FloatType::kF32:
      return "f32";
    case FloatType::kF16:
      return "f16";
    case FloatType::kBF16:
      return "bf16";
  }
  return "?";
}

// OCP FP4 E2M1: sign, two exponent bits of bias 1, one mantissa bit.
constexpr std::array<float, 16> kFloat4 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                           -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

// OCP FP8 E4M3: exponent bias 7, no infinities, S.1111.111 is not a number.
float float8_value(int code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if (exponent == 15 && mantissa == 7) value = NAN;
  return (code & 0x80) != 0 ? -value : value;
}

std::array<float, 256> make_float8() {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) table[code] = float8_value(code);
  return table;
}

void check_rows(const WeightSource& source, int row, int count) {
  if (row < 0 || count < 0 || row > source.rows() - count) {
    throw Error(ErrorKind::kInternal, "Rows outside a weight matrix were asked for.");
  }
}

// Several matrices, one below the other.
class ConcatenatedRows : public WeightSource {
 public:
  ConcatenatedRows(std::vector<WeightSourcePtr> parts, int rows)
      : WeightSource(parts.front()->format(), rows, parts.front()->cols()),
        parts_(std::move(parts)) {}

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const std::int64_t groups = format().quantized() ? cols() / format().group_size : 0;
    each_part(row, count, [&](const WeightSource& part, int first, int rows, std::int64_t done) {
      float* part_biases = biases == nullptr ? nullptr : biases + done * groups;
      part.read_codes(first, rows, codes + done * cols(), scales + done * groups, part_biases);
    });
  }

  void read_values(int row, int count, float* values) const override {
    each_part(row, count, [&](const WeightSource& part, int first, int rows, std::int64_t done) {
      part.read_values(first, rows, values + done * cols());
    });
  }

 private:
  template <typename Read>
  void each_part(int row, int count, const Read& read) const {
    check_rows(*this, row, count);
    int start = 0;  // the part's first row in the whole
    int done = 0;
    for (const WeightSourcePtr& part : parts_) {
      const int first = row + done - start;
      const int rows = std::min(count - done, part->rows() - first);
      if (rows > 0 && first >= 0) {
        read(*part, first, rows, done);
        done += rows;
      }
      start += part->rows();
    }
  }

  std::vector<WeightSourcePtr> parts_;
};

class ReorderedRows : public WeightSource {
 public:
  ReorderedRows(WeightSourcePtr source, std::vector<std::int32_t> order)
      : WeightSource(source->format(), static_cast<int>(order.size()), source->cols()),
        source_(std::move(source)),
        order_(std::move(order)) {}

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const std::int64_t groups = format().quantized() ? cols() / format().group_size : 0;
    each_run(row, count, [&](int first, int rows, std::int64_t done) {
      float* run_biases = biases == nullptr ? nullptr : biases + done * groups;
      source_->read_codes(first, rows, codes + done * cols(), scales + done * groups, run_biases);
    });
  }

  void read_values(int row, int count, float* values) const override {
    each_run(row, count, [&](int first, int rows, std::int64_t done) {
      source_->read_values(first, rows, values + done * cols());
    });
  }

 private:
  // Rows that follow one another in the source too are read at once.
  template <typename Read>
  void each_run(int row, int count, const Read& read) const {
    check_rows(*this, row, count);
    for (int done = 0; done < count;) {
      const std::int32_t first = order_[row + done];
      int rows = 1;
      while (done + rows < count && order_[row + done + rows] == first + rows) ++rows;
      read(first, rows, done);
      done += rows;
    }
  }

  WeightSourcePtr source_;
  std::vector<std::int32_t> order_;
};

void dequantize(const WeightFormat& format, std::int64_t groups, const std::uint8_t* codes,
                const float* scales, const float* biases, float* values) {
  const float* table = code_values(format.kind);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::uint8_t* in = codes + group * format.group_size;
    float* out = values + group * format.group_size;
    const float scale = scales[group];
    if (table == nullptr) {
      const float bias = biases[group];
      for (int i = 0; i < format.group_size; ++i) out[i] = static_cast<float>(in[i]) * scale + bias;
    } else {
      for (int i = 0; i < format.group_size; ++i) out[i] = table[in[i]] * scale;
    }
  }
}

}  // namespace

std::string WeightFormat::name() const {
  const std::string group = " g" + std::to_string(group_size);
  switch (kind) {
    case Kind::kDense:
      return float_name(type);
    case Kind::kAffine:
      return "affine " + std::to_string(bits) + "-bit" + group;
    case Kind::kMxfp4:
      return "mxfp4" + group;
    case Kind::kMxfp8:
      return "mxfp8" + group;
    case Kind::kNvfp4:
      return "nvfp4" + group;
  }
  return "?";
}

std::size_t WeightFormat::bytes(std::int64_t rows, std::int64_t cols) const {
  const std::int64_t values = rows * cols;
  if (!quantized()) return static_cast<std::size_t>(values * float_bytes(type));
  const std::int64_t per_group = kind == Kind::kAffine ? 2 * float_bytes(type) : 1;
  return static_cast<std::size_t>(values * bits / 8 + values / group_size * per_group);
}

const float* code_values(WeightFormat::Kind kind) {
  static const std::array<float, 256> kFloat8 = make_float8();
  if (kind == Kind::kMxfp8) return kFloat8.data();
  return kind == Kind::kMxfp4 || kind == Kind::kNvfp4 ? kFloat4.data() : nullptr;
}

void WeightSource::read_codes(int, int, std::uint8_t*, float*, float*) const {
  throw Error(ErrorKind::kInternal, "A matrix of " + format_.name() + " has no codes to read.");
}

void WeightSource::read_values(int row, int count, float* values) const {
  if (!format_.quantized()) {
    throw Error(ErrorKind::kInternal, "A dense weight source must read its own values.");
  }
  check_rows(*this, row, count);
  const std::int64_t groups = cols_ / format_.group_size;
  std::vector<std::uint8_t> codes(cols_);
  std::vector<float> scales(groups);
  std::vector<float> biases(groups);
  for (std::int64_t i = 0; i < count; ++i) {
    read_codes(row + static_cast<int>(i), 1, codes.data(), scales.data(), biases.data());
    dequantize(format_, groups, codes.data(), scales.data(), biases.data(), values + i * cols_);
  }
}

WeightSourcePtr concat_rows(std::vector<WeightSourcePtr> parts) {
  if (parts.empty()) throw Error(ErrorKind::kInternal, "No matrices to put together.");
  std::int64_t rows = 0;
  for (const WeightSourcePtr& part : parts) {
    if (part->format() != parts.front()->format() || part->cols() != parts.front()->cols()) {
      throw Error(ErrorKind::kInternal, "Matrices of unlike format or width cannot be one: " +
                                            parts.front()->format().name() + " and " +
                                            part->format().name() + ".");
    }
    rows += part->rows();
  }
  if (parts.size() == 1) return parts.front();
  return std::make_shared<ConcatenatedRows>(std::move(parts), static_cast<int>(rows));
}

WeightSourcePtr reorder_rows(WeightSourcePtr source, std::vector<std::int32_t> order) {
  for (const std::int32_t row : order) check_rows(*source, row, 1);
  return std::make_shared<ReorderedRows>(std::move(source), std::move(order));
}

}  // namespace bodega::ops
