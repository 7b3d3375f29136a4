#include "ops/cpu/packed_matrix.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/half.h"

namespace bodega::ops::cpu {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kScanRows = 64;

// One bit plane of a tile's block of 32 columns: see linear_bodies.h, plane().
struct PlaneLayout {
  int bits;
  int shift;  // of the plane within a code
  int pack;   // columns side by side in a 32-bit word
  int lanes;

  int words() const { return bits; }
  // Calls at(word, bit, column) for every code of the block.
  template <class F>
  void each(F at) const {
    const int width = 32 / pack;
    const int fields = width / bits;
    for (int k = 0; k < kGroup; ++k) {
      const int field = k / pack;
      at(field / fields, k % pack * width + field % fields * bits, k);
    }
  }
};

struct Planes {
  PlaneLayout low;
  PlaneLayout high;  // no bits = there is none
};
Planes planes_of(int bits, int pack, int lanes) {
  const int low = bits == 3 ? 2 : bits == 5 || bits == 6 ? 4 : bits;
  return {{low, 0, pack, lanes}, {bits - low, low, pack, lanes}};
}

// Adds the codes of one row's block to the words of a bit plane.
void pack_plane(const PlaneLayout& plane, const std::uint8_t* codes, int lane,
                std::uint8_t* words) {
  const unsigned mask = (1U << plane.bits) - 1U;
  std::uint32_t values[8] = {};
  plane.each(
      [&](int word, int bit, int k) { values[word] |= ((codes[k] >> plane.shift) & mask) << bit; });
  for (int word = 0; word < plane.words(); ++word) {
    std::memcpy(words + (static_cast<std::size_t>(word) * plane.lanes + lane) * 4, values + word,
                4);
  }
}

void unpack_plane(const PlaneLayout& plane, const std::uint8_t* words, int lane, unsigned* codes) {
  const unsigned mask = (1U << plane.bits) - 1U;
  std::uint32_t values[8];
  for (int word = 0; word < plane.words(); ++word) {
    std::memcpy(values + word, words + (static_cast<std::size_t>(word) * plane.lanes + lane) * 4,
                4);
  }
  plane.each(
      [&](int word, int bit, int k) { codes[k] |= ((values[word] >> bit) & mask) << plane.shift; });
}

Storage dense_storage(FloatType type) {
  if (type == FloatType::kF16) return Storage::kF16;
  return type == FloatType::kBF16 ? Storage::kBF16 : Storage::kF32;
}

int element_bytes(Storage storage) { return storage == Storage::kF32 ? 4 : 2; }

// What all scales and biases of a matrix have in common.
struct ScaleFacts {
  std::atomic<bool> symmetric{true};
  std::atomic<bool> wide{false};
};

struct Scan {
  const WeightSource* source;
  ScaleFacts* facts;
};

bool survives_half(float value) { return half_to_float(float_to_half(value)) == value; }

// Every kind of codes as affine ones: w = scale * q + bias. FP4 values are halves of whole numbers
// from -12 to 12, so they are 5-bit codes around 16, without loss.
struct AffineCodes {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales, biases;

  AffineCodes(const WeightSource& source, int row, int count)
      : codes(static_cast<std::size_t>(count) * source.cols()),
        scales(codes.size() / source.format().group_size),
        biases(scales.size()) {
    source.read_codes(row, count, codes.data(), scales.data(), biases.data());
    if (source.format().kind != WeightFormat::Kind::kMxfp4) return;
    const float* values = code_values(source.format().kind);
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(2.0F * values[code] + 16.0F);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      scales[i] *= 0.5F;
      biases[i] = -16.0F * scales[i];
    }
  }
};

bool has_codes(const WeightFormat& format) {
  return format.kind == WeightFormat::Kind::kAffine || format.kind == WeightFormat::Kind::kMxfp4;
}
int code_bits(const WeightFormat& format) {
  return format.kind == WeightFormat::Kind::kMxfp4 ? 5 : format.bits;
}

void scan_rows(const void* context, int chunk, int) {
  const auto& scan = *static_cast<const Scan*>(context);
  const WeightSource& source = *scan.source;
  const int begin = chunk * kScanRows;
  const int count = std::min(kScanRows, source.rows() - begin);
  const auto& [codes, scales, biases] = AffineCodes(source, begin, count);
  const float offset = -std::ldexp(1.0F, code_bits(source.format()) - 1);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (biases[i] != offset * scales[i]) scan.facts->symmetric.store(false);
    if (!survives_half(scales[i]) || !survives_half(biases[i])) scan.facts->wide.store(true);
  }
}

}  // namespace

void PackedMatrix::Free::operator()(std::uint8_t* p) const { std::free(p); }

bool PackedMatrix::supports(const WeightFormat& format, int cols) {
  if (cols % kGroup != 0) return false;
  if (!has_codes(format)) return true;
  return format.group_size % kGroup == 0 && cols % format.group_size == 0 && format.bits >= 1 &&
         format.bits <= 8 && format.bits != 7;
}

PackedMatrix::PackedMatrix(const WeightSource& source, const Kernels& kernels, Options options,
                           ThreadPool& pool)
    : rows_(source.rows()), lanes_(kernels.lanes), half_(options.pair ? source.rows() / 2 : 0) {
  const WeightFormat& format = source.format();
  view_.cols = source.cols();
  const int part = options.pair ? half_ : rows_;
  tiles_ = (part + lanes_ - 1) / lanes_ * (options.pair ? 2 : 1);
  if (has_codes(format)) {
    ScaleFacts facts;
    const Scan scan{&source, &facts};
    const ThreadPool::Phase phase{(rows_ + kScanRows - 1) / kScanRows, scan_rows, &scan};
    pool.run({&phase, 1});
    view_.bits = code_bits(format);
    view_.activations = kernels.activations(view_.bits, options.fast);
    view_.group_size = format.group_size;
    view_.symmetric = facts.symmetric;
    view_.wide_scales = facts.wide;
    const std::size_t scales = static_cast<std::size_t>(lanes_) * (view_.wide_scales ? 4 : 2);
    view_.tile_bytes = static_cast<std::size_t>(view_.cols) * view_.bits / 8 * lanes_ +
                       view_.cols / format.group_size * scales * (view_.symmetric ? 1 : 2);
  } else {
    // FP8 and NVFP4 values have at most six significant bits and fit bf16 without loss.
    view_.storage = format.quantized() ? Storage::kBF16 : dense_storage(format.type);
    view_.tile_bytes = static_cast<std::size_t>(view_.cols) * lanes_ * element_bytes(view_.storage);
  }
  bytes_ = (view_.tile_bytes * tiles_ + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, bytes_)));
  if (data_ == nullptr) throw std::bad_alloc();
  view_.data = data_.get();
  struct Context {
    PackedMatrix* self;
    const WeightSource* source;
  } context{this, &source};
  const ThreadPool::Phase phase{tiles_,
                                [](const void* c, int tile, int) {
                                  const auto& x = *static_cast<const Context*>(c);
                                  x.self->pack_tile(*x.source, tile);
                                },
                                &context};
  pool.run({&phase, 1});
}

int PackedMatrix::first_row(int tile) const {
  if (half_ == 0) return tile * lanes_;
  const int per_half = tiles_ / 2;
  return tile < per_half ? tile * lanes_ : half_ + (tile - per_half) * lanes_;
}

int PackedMatrix::row_count(int tile) const {
  const int begin = first_row(tile);
  const int end = half_ != 0 && tile < tiles_ / 2 ? half_ : rows_;
  return std::min(lanes_, end - begin);
}

int PackedMatrix::tile_of(int row) const {
  if (half_ == 0 || row < half_) return row / lanes_;
  return tiles_ / 2 + (row - half_) / lanes_;
}

void PackedMatrix::pack_tile(const WeightSource& source, int tile) {
  std::uint8_t* to = data_.get() + view_.tile_bytes * tile;
  std::memset(to, 0, view_.tile_bytes);
  if (view_.storage == Storage::kAffine) {
    pack_affine(source, tile, to);
  } else {
    pack_dense(source, tile, to);
  }
}

void PackedMatrix::pack_affine(const WeightSource& source, int tile, std::uint8_t* to) const {
  const int count = row_count(tile);
  const int groups = view_.cols / view_.group_size;
  const auto& [codes, scales, biases] = AffineCodes(source, first_row(tile), count);
  const Planes planes = planes_of(view_.bits, pack_of(view_.activations), lanes_);
  auto put_scales = [&](const std::vector<float>& values, int group) {
    for (int lane = 0; lane < count; ++lane) {
      const float value = values[static_cast<std::size_t>(lane) * groups + group];
      const std::uint16_t half = float_to_half(value);
      if (view_.wide_scales) std::memcpy(to + lane * 4, &value, 4);
      if (!view_.wide_scales) std::memcpy(to + lane * 2, &half, 2);
    }
    to += static_cast<std::size_t>(lanes_) * (view_.wide_scales ? 4 : 2);
  };
  for (int group = 0; group < groups; ++group) {
    for (int block = 0; block < view_.group_size / kGroup; ++block) {
      for (int lane = 0; lane < count; ++lane) {
        const std::uint8_t* from = codes.data() + static_cast<std::size_t>(lane) * view_.cols +
                                   group * view_.group_size + block * kGroup;
        pack_plane(planes.low, from, lane, to);
        if (planes.high.bits > 0) {
          pack_plane(planes.high, from, lane, to + planes.low.words() * 4 * lanes_);
        }
      }
      to += static_cast<std::size_t>(view_.bits) * 4 * lanes_;
    }
    put_scales(scales, group);
    if (!view_.symmetric) put_scales(biases, group);
  }
}

void PackedMatrix::pack_dense(const WeightSource& source, int tile, std::uint8_t* to) const {
  const int count = row_count(tile);
  std::vector<float> values(static_cast<std::size_t>(count) * view_.cols);
  source.read_values(first_row(tile), count, values.data());
  for (int k = 0; k < view_.cols; ++k) {
    for (int lane = 0; lane < count; ++lane) {
      const float value = values[static_cast<std::size_t>(lane) * view_.cols + k];
      const std::size_t at = static_cast<std::size_t>(k) * lanes_ + lane;
      if (view_.storage == Storage::kF32) {
        std::memcpy(to + at * 4, &value, 4);
      } else {
        const std::uint16_t half =
            view_.storage == Storage::kF16 ? float_to_half(value) : float_to_bfloat(value);
        std::memcpy(to + at * 2, &half, 2);
      }
    }
  }
}

void PackedMatrix::read_row(int row, float* values) const {
  const int tile = tile_of(row);
  const int lane = row - first_row(tile);
  const std::uint8_t* from = view_.data + view_.tile_bytes * tile;
  if (view_.storage != Storage::kAffine) {
    for (int k = 0; k < view_.cols; ++k) {
      const std::uint8_t* at =
          from + (static_cast<std::size_t>(k) * lanes_ + lane) * element_bytes(view_.storage);
      std::uint16_t half;
      std::memcpy(&half, at, 2);
      if (view_.storage == Storage::kF32) std::memcpy(values + k, at, 4);
      if (view_.storage == Storage::kF16) values[k] = half_to_float(half);
      if (view_.storage == Storage::kBF16) values[k] = bfloat_to_float(half);
    }
    return;
  }
  const Planes planes = planes_of(view_.bits, pack_of(view_.activations), lanes_);
  const int blocks = view_.group_size / kGroup;
  const std::size_t block_bytes = static_cast<std::size_t>(view_.bits) * 4 * lanes_;
  auto read_scale = [&](const std::uint8_t* at) {
    float wide;
    std::uint16_t half;
    if (view_.wide_scales) return std::memcpy(&wide, at + lane * 4, 4), wide;
    return std::memcpy(&half, at + lane * 2, 2), half_to_float(half);
  };
  for (int k = 0; k < view_.cols; k += view_.group_size) {
    const std::uint8_t* scales = from + block_bytes * blocks;
    const std::size_t scale_bytes = static_cast<std::size_t>(lanes_) * (view_.wide_scales ? 4 : 2);
    const float scale = read_scale(scales);
    const float bias =
        view_.symmetric ? -std::ldexp(scale, view_.bits - 1) : read_scale(scales + scale_bytes);
    for (int block = 0; block < blocks; ++block, from += block_bytes) {
      unsigned codes[kGroup] = {};
      unpack_plane(planes.low, from, lane, codes);
      if (planes.high.bits > 0) {
        unpack_plane(planes.high, from + planes.low.words() * 4 * lanes_, lane, codes);
      }
      for (int i = 0; i < kGroup; ++i) {
        values[k + block * kGroup + i] = static_cast<float>(codes[i]) * scale + bias;
      }
    }
    from = scales + scale_bytes * (view_.symmetric ? 1 : 2);
  }
}

}  // namespace bodega::ops::cpu
