#include "ops/cuda/packed_matrix.h"

#include <cstring>

#include "base/half.h"

namespace bodega::ops::cuda {
namespace {

constexpr int kTileRows = 16;

std::uint16_t to_bits(float value, bool bf16) {
  return bf16 ? float_to_bfloat(value) : float_to_half(value);
}
float from_bits(std::uint16_t bits, bool bf16) {
  return bf16 ? bfloat_to_float(bits) : half_to_float(bits);
}

// Where a value's code lies in its unit.
struct CodePlace {
  int byte;
  int shift;
};
CodePlace place_of(int bits, int local, int column) {
  const int half = column / 32;
  const int lane = 4 * (local % 8) + column % 32 / 8;
  const int second = local / 8;
  const int j = column % 8;
  if (bits == 8) return {512 * half + 16 * lane + 8 * second + j, 0};
  const int nibble = j / 2 + 4 * (j % 2);
  return {16 * lane + 4 * (2 * half + second) + nibble / 2, 4 * (nibble % 2)};
}
int scale_place(const HostMatrix& m, int local, int column) {
  return 8 * (column / m.group * 8 + local % 8) + 4 * (local / 8);
}

struct Packing {
  const WeightSource* source;
  HostMatrix* to;
};

void pack_row(const HostMatrix& m, int tile, int local, const std::uint8_t* row,
              const float* scales, const float* biases, int source_group, HostMatrix& to) {
  for (int unit = 0; unit < m.units; ++unit) {
    const std::size_t at = static_cast<std::size_t>(tile) * m.units + unit;
    std::uint8_t* codes = to.codes.data() + at * m.code_bytes();
    std::uint8_t* marks = to.scales.data() + at * m.scale_bytes();
    const int columns = std::min(kUnitCols, m.cols - unit * kUnitCols);
    for (int k = 0; k < columns; ++k) {
      const CodePlace place = place_of(m.bits, local, k);
      codes[place.byte] |= static_cast<std::uint8_t>(row[unit * kUnitCols + k] << place.shift);
    }
    for (int k = 0; k < columns; k += m.group) {
      const int group = (unit * kUnitCols + k) / source_group;
      const std::uint16_t pair[2] = {to_bits(scales[group], m.bf16),
                                     to_bits(biases[group], m.bf16)};
      std::memcpy(marks + scale_place(m, local, k), pair, sizeof(pair));
    }
  }
}

void pack_tile(const void* context, int tile, int /*worker*/) {
  const auto& packing = *static_cast<const Packing*>(context);
  HostMatrix& m = *packing.to;
  const int source_group = packing.source->format().group_size;
  const int groups = m.cols / source_group;
  std::vector<std::uint8_t> codes(m.cols);
  std::vector<float> scales(groups);
  std::vector<float> biases(groups);
  for (int local = 0; local < kTileRows; ++local) {
    const int row = m.row_of(tile, local);
    if (row < 0) continue;
    packing.source->read_codes(row, 1, codes.data(), scales.data(), biases.data());
    pack_row(m, tile, local, codes.data(), scales.data(), biases.data(), source_group, m);
  }
}

}  // namespace

int HostMatrix::row_of(int tile, int local) const {
  if (!pair) {
    const int row = tile * kTileRows + local;
    return row < rows ? row : -1;
  }
  const int half = rows / 2;
  const int row = tile / 2 * kTileRows + local;
  return row < half ? row + (tile % 2) * half : -1;
}

int tile_of(const HostMatrix& shape, int row) {
  if (!shape.pair) return row / kTileRows;
  const int half = shape.rows / 2;
  return row % half / kTileRows * 2 + row / half;
}

bool packable(const WeightFormat& format, int cols) {
  const int group = format.group_size;
  return format.kind == WeightFormat::Kind::kAffine && (format.bits == 4 || format.bits == 8) &&
         (group == 32 || group == 64 || group == 128) && cols % group == 0 &&
         format.type != FloatType::kF32;
}

HostMatrix pack(const WeightSource& source, bool pair, ThreadPool& pool) {
  const WeightFormat& format = source.format();
  HostMatrix m;
  m.rows = source.rows();
  m.cols = source.cols();
  m.bits = format.bits;
  m.group = std::min(format.group_size, kUnitCols);
  m.bf16 = format.type == FloatType::kBF16;
  m.pair = pair;
  m.units = (m.cols + kUnitCols - 1) / kUnitCols;
  const int rows = pair ? m.rows / 2 : m.rows;
  const int tiles = (rows + kTileRows - 1) / kTileRows;
  m.tiles = pair ? 2 * tiles : tiles + tiles % 2;
  const std::size_t units = static_cast<std::size_t>(m.tiles) * m.units;
  m.codes.assign(units * m.code_bytes(), 0);
  m.scales.assign(units * m.scale_bytes(), 0);
  const Packing packing{&source, &m};
  const ThreadPool::Phase phase{m.tiles, pack_tile, &packing};
  pool.run({&phase, 1});
  return m;
}

void unpack_row(const HostMatrix& shape, int row, const std::uint8_t* tile_codes,
                const std::uint8_t* tile_scales, float* values) {
  const int local = (shape.pair ? row % (shape.rows / 2) : row) % kTileRows;
  for (int k = 0; k < shape.cols; ++k) {
    const int unit = k / kUnitCols;
    const CodePlace place = place_of(shape.bits, local, k % kUnitCols);
    const int code =
        tile_codes[static_cast<std::size_t>(unit) * shape.code_bytes() + place.byte] >> place.shift;
    std::uint16_t pair[2];
    std::memcpy(pair,
                tile_scales + static_cast<std::size_t>(unit) * shape.scale_bytes() +
                    scale_place(shape, local, k % kUnitCols),
                sizeof(pair));
    values[k] =
        static_cast<float>(code & ((1 << shape.bits) - 1)) * from_bits(pair[0], shape.bf16) +
        from_bits(pair[1], shape.bf16);
  }
}

PackedMatrix::PackedMatrix(HostMatrix host)
    : shape_(std::move(host)), codes_(shape_.codes.size()), scales_(shape_.scales.size()) {
  const Driver& driver = *Driver::find();
  driver.upload(codes_.address(), shape_.codes.data(), shape_.codes.size());
  driver.upload(scales_.address(), shape_.scales.data(), shape_.scales.size());
  shape_.codes = {};
  shape_.scales = {};
}

PackedWeights PackedMatrix::view() const {
  return {codes_.as<unsigned char>(),
          scales_.as<unsigned char>(),
          shape_.units,
          shape_.tiles,
          shape_.rows,
          shape_.pair ? 1 : 0};
}

std::string PackedMatrix::definitions() const {
  return "-DBODEGA_BITS=" + std::to_string(shape_.bits) +
         " -DBODEGA_GROUP=" + std::to_string(shape_.group) +
         " -DBODEGA_BF16=" + (shape_.bf16 ? "1" : "0");
}

void PackedMatrix::read_row(int row, float* values) const {
  const std::size_t codes = static_cast<std::size_t>(shape_.units) * shape_.code_bytes();
  const std::size_t scales = static_cast<std::size_t>(shape_.units) * shape_.scale_bytes();
  std::vector<std::uint8_t> tile_codes(codes);
  std::vector<std::uint8_t> tile_scales(scales);
  const auto tile = static_cast<DeviceAddress>(tile_of(shape_, row));
  const Driver& driver = *Driver::find();
  driver.download(tile_codes.data(), codes_.address() + tile * codes, codes);
  driver.download(tile_scales.data(), scales_.address() + tile * scales, scales);
  unpack_row(shape_, row, tile_codes.data(), tile_scales.data(), values);
}

}  // namespace bodega::ops::cuda
