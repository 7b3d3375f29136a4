#include "ops/metal/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/half.h"

namespace bodega::ops::metal {
namespace {

constexpr int kOutputs = 32;  // of a block
constexpr int kTiles = 4;     // of eight outputs
constexpr int kLanes = 32;
constexpr int kHalfScale = 0;
constexpr int kBfloatScale = 1;
constexpr int kFloatScale = 2;

std::uint16_t narrow(float value, int kind) {
  return kind == kBfloatScale ? float_to_bfloat(value) : float_to_half(value);
}
float widen(std::uint16_t bits, int kind) {
  return kind == kBfloatScale ? bfloat_to_float(bits) : half_to_float(bits);
}

// Where an output's code of a column lies within its group: the word, and the bits in it.
struct Place {
  std::size_t word;
  int shift;
};
Place place_of(const PackedLayout& layout, int output, int col) {
  const int per_word = 32 / layout.bits;  // codes: two of each 8x8 matrix
  const int matrix = col / 8;
  const int step = matrix / (per_word / 2);
  const int inside = matrix % (per_word / 2);
  const int row = output % 8;
  const int lane = row / 4 * 16 + col % 8 / 4 * 8 + row % 4 * 2 + col % 4 / 2;
  return {static_cast<std::size_t>(step * kLanes + lane) * kTiles + output / 8,
          (2 * inside + col % 2) * layout.bits};
}

void put(const Place& place, std::uint32_t code, std::uint8_t* group) {
  std::uint32_t word;
  std::memcpy(&word, group + place.word * 4, 4);
  word |= code << place.shift;
  std::memcpy(group + place.word * 4, &word, 4);
}

std::uint32_t get(const PackedLayout& layout, const Place& place, const std::uint8_t* group) {
  std::uint32_t word;
  std::memcpy(&word, group + place.word * 4, 4);
  const std::uint32_t mask = (1U << layout.bits) - 1U;
  return (word >> place.shift) & mask;
}

// Scales of an output: eight rows of a lane's tiles lie together.
std::size_t scale_index(int output) {
  return static_cast<std::size_t>(output % 8) * kTiles + output / 8;
}

void put_scale(const PackedLayout& layout, int output, float scale, float bias,
               std::uint8_t* scales) {
  if (layout.scale_kind == kFloatScale) {
    const float both[2] = {scale, bias};
    std::memcpy(scales + scale_index(output) * sizeof both, both, sizeof both);
    return;
  }
  const std::uint16_t both[2] = {narrow(scale, layout.scale_kind), narrow(bias, layout.scale_kind)};
  std::memcpy(scales + scale_index(output) * sizeof both, both, sizeof both);
}

void get_scale(const PackedLayout& layout, int output, const std::uint8_t* scales, float* both) {
  if (layout.scale_kind == kFloatScale) {
    std::memcpy(both, scales + scale_index(output) * 8, 8);
    return;
  }
  std::uint16_t bits[2];
  std::memcpy(bits, scales + scale_index(output) * 4, 4);
  for (int i = 0; i < 2; ++i) both[i] = widen(bits[i], layout.scale_kind);
}

bool holds(float value, int kind) { return widen(narrow(value, kind), kind) == value; }

bool small_floats(const WeightFormat& format) {
  return format.kind == WeightFormat::Kind::kMxfp4 || format.kind == WeightFormat::Kind::kMxfp8;
}

// Codes of small floats become halves of a smaller exponent (kernels/common.metal).
float scale_factor(const PackedLayout& layout) {
  if (layout.codes == 0) return 1.0F;
  return layout.bits == 4 ? 16384.0F : 256.0F;
}

// The number that the kernels make of a code.
float code_value(const PackedLayout& layout, std::uint32_t code) {
  if (layout.codes == 0) return static_cast<float>(code);
  const std::uint32_t half = layout.bits == 4 ? (code & 7U) << 9U | (code & 8U) << 12U
                                              : (code & 127U) << 7U | (code & 128U) << 8U;
  return half_to_float(static_cast<std::uint16_t>(half));
}

// fp32 when some scale or bias does not fit the narrow type the file claims. Scales of small floats
// are powers of two.
int scale_kind_of(const WeightSource& source) {
  const FloatType type = source.format().type;
  const bool floats = small_floats(source.format());
  if (type == FloatType::kF32 && !floats) return kFloatScale;
  const int kind = type == FloatType::kBF16 || floats ? kBfloatScale : kHalfScale;
  const std::size_t groups = source.cols() / source.format().group_size;
  std::vector<std::uint8_t> codes(source.cols());
  std::vector<float> scales(groups), biases(groups);
  for (int row = 0; row < source.rows(); ++row) {
    source.read_codes(row, 1, codes.data(), scales.data(), biases.data());
    for (std::size_t g = 0; g < groups; ++g) {
      if (!holds(scales[g], kind) || !holds(biases[g], kind)) return kFloatScale;
    }
  }
  return kind;
}

}  // namespace

int PackedLayout::blocks() const {
  return pair ? (rows / 2 + kOutputs / 2 - 1) / (kOutputs / 2) : (rows + kOutputs - 1) / kOutputs;
}

std::size_t PackedLayout::group_bytes() const {
  if (bits == 16) return code_bytes();
  return code_bytes() + kOutputs * (scale_kind == kFloatScale ? 8U : 4U);
}

int PackedLayout::row_of(int block, int output) const {
  if (!pair) {
    const int row = block * kOutputs + output;
    return row < rows ? row : -1;
  }
  const int inside = block * (kOutputs / 2) + output % (kOutputs / 2);
  if (inside >= rows / 2) return -1;
  return output < kOutputs / 2 ? inside : rows / 2 + inside;
}

bool packable(const WeightFormat& format, int cols) {
  using Kind = WeightFormat::Kind;
  if (format.kind == Kind::kDense) return format.type != FloatType::kF32 && cols % 32 == 0;
  const bool affine = format.kind == Kind::kAffine && format.bits >= 1 && format.bits <= 8;
  if (!affine && !small_floats(format)) return false;
  return (format.group_size == 32 || format.group_size == 64 || format.group_size == 128) &&
         cols % format.group_size == 0;
}

PackedLayout layout_for(const WeightSource& source, bool pair) {
  const WeightFormat& format = source.format();
  PackedLayout layout{.rows = source.rows(), .cols = source.cols(), .pair = pair};
  if (format.quantized()) {
    layout.bits = format.bits <= 4 ? 4 : 8;
    layout.codes = small_floats(format) ? 1 : 0;
    layout.group_size = format.group_size;
    layout.scale_kind = scale_kind_of(source);
  } else {
    layout.bits = 16;
    layout.group_size = 32;
    layout.scale_kind = format.type == FloatType::kBF16 ? kBfloatScale : kHalfScale;
  }
  return layout;
}

void pack_block(const WeightSource& source, const PackedLayout& layout, int block,
                std::uint8_t* to) {
  std::memset(to, 0, layout.block_bytes());
  const int groups = layout.groups();
  std::vector<std::uint8_t> codes(layout.cols);
  std::vector<float> scales(groups), biases(groups), values(layout.cols);
  for (int output = 0; output < kOutputs; ++output) {
    const int row = layout.row_of(block, output);
    if (row < 0) continue;
    if (layout.bits == 16) {
      source.read_values(row, 1, values.data());
    } else {
      source.read_codes(row, 1, codes.data(), scales.data(), biases.data());
    }
    for (int g = 0; g < groups; ++g) {
      std::uint8_t* group = to + layout.group_bytes() * g;
      for (int k = 0; k < layout.group_size; ++k) {
        const int col = g * layout.group_size + k;
        const std::uint32_t code =
            layout.bits == 16 ? narrow(values[col], layout.scale_kind) : codes[col];
        put(place_of(layout, output, k), code, group);
      }
      if (layout.bits != 16) {
        put_scale(layout, output, scales[g] * scale_factor(layout), biases[g],
                  group + layout.code_bytes());
      }
    }
  }
}

void read_packed_row(const PackedLayout& layout, const std::uint8_t* data, int row, float* values) {
  const int half = layout.rows / 2;
  const int width = layout.pair ? kOutputs / 2 : kOutputs;
  const int inside = layout.pair && row >= half ? row - half : row;
  const int output = inside % width + (layout.pair && row >= half ? width : 0);
  const std::uint8_t* block = data + layout.block_bytes() * (inside / width);
  for (int g = 0; g < layout.groups(); ++g) {
    const std::uint8_t* group = block + layout.group_bytes() * g;
    float both[2] = {1.0F, 0.0F};
    if (layout.bits != 16) get_scale(layout, output, group + layout.code_bytes(), both);
    for (int k = 0; k < layout.group_size; ++k) {
      const std::uint32_t code = get(layout, place_of(layout, output, k), group);
      values[g * layout.group_size + k] =
          layout.bits == 16 ? widen(static_cast<std::uint16_t>(code), layout.scale_kind)
                            : code_value(layout, code) * both[0] + both[1];
    }
  }
}

}  // namespace bodega::ops::metal
