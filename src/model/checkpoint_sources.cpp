#include "model/checkpoint_sources.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/errors.h"
#include "model/checkpoint_floats.h"

namespace bodega::model {
namespace {

using ops::FloatType;
using ops::WeightFormat;
using Kind = ops::WeightFormat::Kind;

constexpr int kBlock = 32;  // values of a ggml block

void check_rows(const ops::WeightSource& source, int row, int count) {
  if (row < 0 || count < 0 || row > source.rows() - count) {
    throw Error(ErrorKind::kInternal, "Rows outside a weight matrix were asked for.");
  }
}

class DenseSource : public ops::WeightSource {
 public:
  DenseSource(const TensorBytes& values, FloatType type, int rows, int cols)
      : WeightSource({.kind = Kind::kDense, .type = type}, rows, cols),
        range_(values.file, values.bytes) {}

  void read_values(int row, int count, float* values) const override {
    check_rows(*this, row, count);
    const std::size_t width = static_cast<std::size_t>(cols()) * float_size(format().type);
    const std::size_t values_read = static_cast<std::size_t>(count) * cols();
    widen(format().type, range_.data() + row * width, values_read, values);
    range_.note_read(count * width);
  }

 private:
  MappedRange range_;
};

// Block layouts of ggml-common.h. Nibble i of a 4-bit block's 16 bytes: the low halves are values
// 0-15, the high halves 16-31.
void unpack_nibbles(const std::byte* in, std::uint8_t* codes) {
  for (int i = 0; i < kBlock / 2; ++i) {
    const auto pair = static_cast<std::uint8_t>(in[i]);
    codes[i] = pair & 15;
    codes[i + kBlock / 2] = pair >> 4;
  }
}

struct Q40Block {
  static constexpr int kBits = 4;
  static constexpr std::size_t kBytes = 18;
  static void read(const std::byte* block, std::uint8_t* codes, float* scale, float* bias) {
    *scale = half_to_float(load_u16(block));
    *bias = -8.0F * *scale;
    unpack_nibbles(block + 2, codes);
  }
};

struct Q41Block {
  static constexpr int kBits = 4;
  static constexpr std::size_t kBytes = 20;
  static void read(const std::byte* block, std::uint8_t* codes, float* scale, float* bias) {
    *scale = half_to_float(load_u16(block));
    *bias = half_to_float(load_u16(block + 2));
    unpack_nibbles(block + 4, codes);
  }
};

struct Q80Block {
  static constexpr int kBits = 8;
  static constexpr std::size_t kBytes = 34;
  static void read(const std::byte* block, std::uint8_t* codes, float* scale, float* bias) {
    *scale = half_to_float(load_u16(block));
    *bias = -128.0F * *scale;
    for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<std::uint8_t>(block[2 + i]) ^ 0x80U;
  }
};

template <typename Block>
class GgufSource : public ops::WeightSource {
 public:
  GgufSource(const TensorBytes& blocks, int rows, int cols)
      : WeightSource({.kind = Kind::kAffine,
                      .bits = Block::kBits,
                      .group_size = kBlock,
                      .type = FloatType::kF16},
                     rows, cols),
        range_(blocks.file, blocks.bytes) {}

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    check_rows(*this, row, count);
    const std::size_t per_row = cols() / kBlock;
    const std::size_t blocks = count * per_row;
    const std::byte* in = range_.data() + row * per_row * Block::kBytes;
    for (std::size_t i = 0; i < blocks; ++i) {
      Block::read(in + i * Block::kBytes, codes + i * kBlock, scales + i, biases + i);
    }
    range_.note_read(blocks * Block::kBytes);
  }

 private:
  MappedRange range_;
};

// Eight codes lie in `bits` bytes, whatever the width: 3, 5 and 6 bits run across bytes.
template <int bits>
void unpack(const std::byte* in, std::size_t count, std::uint8_t* codes) {
  constexpr std::uint64_t kMask = (1U << bits) - 1;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + i / 8 * bits, bits);
    for (int j = 0; j < 8; ++j)
      codes[i + j] = static_cast<std::uint8_t>(word >> (j * bits) & kMask);
  }
}

template <>
void unpack<4>(const std::byte* in, std::size_t count, std::uint8_t* codes) {
  for (std::size_t i = 0; i < count / 2; ++i) {
    const auto pair = static_cast<std::uint8_t>(in[i]);
    codes[2 * i] = pair & 15;
    codes[2 * i + 1] = pair >> 4;
  }
}

void unpack_codes(int bits, const std::byte* in, std::size_t count, std::uint8_t* codes) {
  switch (bits) {
    case 2:
      return unpack<2>(in, count, codes);
    case 3:
      return unpack<3>(in, count, codes);
    case 4:
      return unpack<4>(in, count, codes);
    case 5:
      return unpack<5>(in, count, codes);
    case 6:
      return unpack<6>(in, count, codes);
    case 8:
      std::memcpy(codes, in, count);
      return;
    default:
      throw Error(ErrorKind::kInternal, "Codes of this width cannot be read.");
  }
}

// OCP E8M0: a power of two; 255 is not a number, 0 is the subnormal 2^-127.
float power_scale(std::uint8_t code) {
  if (code == 255) return std::bit_cast<float>(0x7FC00000U);
  return std::bit_cast<float>(code == 0 ? 0x00400000U : static_cast<std::uint32_t>(code) << 23);
}

class MlxSource : public ops::WeightSource {
 public:
  MlxSource(const MlxTensors& tensors, const WeightFormat& format, int rows, int cols)
      : WeightSource(format, rows, cols),
        codes_(tensors.codes.file, tensors.codes.bytes),
        scales_(tensors.scales.file, tensors.scales.bytes) {
    if (tensors.biases) biases_.emplace(tensors.biases->file, tensors.biases->bytes);
  }

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    check_rows(*this, row, count);
    const std::size_t values = static_cast<std::size_t>(count) * cols();
    const std::size_t width = static_cast<std::size_t>(cols()) * format().bits / 8;
    unpack_codes(format().bits, codes_.data() + row * width, values, codes);
    codes_.note_read(count * width);
    read_scales(row, count, scales, biases);
  }

 private:
  void read_scales(int row, int count, float* scales, float* biases) const {
    const std::size_t per_row = cols() / format().group_size;
    const std::size_t first = row * per_row;
    const std::size_t groups = count * per_row;
    if (biases_) {
      const std::size_t size = float_size(format().type);
      widen(format().type, scales_.data() + first * size, groups, scales);
      widen(format().type, biases_->data() + first * size, groups, biases);
      scales_.note_read(groups * size);
      biases_->note_read(groups * size);
      return;
    }
    const float* float8 = ops::code_values(Kind::kMxfp8);
    for (std::size_t i = 0; i < groups; ++i) {
      const auto code = static_cast<std::uint8_t>(scales_.data()[first + i]);
      scales[i] = format().kind == Kind::kNvfp4 ? float8[code] : power_scale(code);
    }
    scales_.note_read(groups);
  }

  MappedRange codes_;
  MappedRange scales_;
  std::optional<MappedRange> biases_;
};

}  // namespace

ops::WeightSourcePtr dense_source(const TensorBytes& values, FloatType type, int rows, int cols) {
  return std::make_shared<DenseSource>(values, type, rows, cols);
}

ops::WeightSourcePtr gguf_source(const TensorBytes& blocks, const std::string& type, int rows,
                                 int cols) {
  if (type == "Q4_0") return std::make_shared<GgufSource<Q40Block>>(blocks, rows, cols);
  if (type == "Q4_1") return std::make_shared<GgufSource<Q41Block>>(blocks, rows, cols);
  if (type == "Q8_0") return std::make_shared<GgufSource<Q80Block>>(blocks, rows, cols);
  throw Error(ErrorKind::kInternal, "No reader for blocks of type " + type + ".");
}

ops::WeightSourcePtr mlx_source(const MlxTensors& tensors, const WeightFormat& format, int rows,
                                int cols) {
  return std::make_shared<MlxSource>(tensors, format, rows, cols);
}

}  // namespace bodega::model
