#pragma once

#include <cstdint>
#include <cstring>

#include "ops/cpu/kernel_bodies.h"

// Quantised linear layers: rows of activations as integers against packed codes. Integer sums are
// exact, so their order is free; the fp32 sums over groups run in the order of the columns.
namespace bodega::ops::cpu {
namespace {

template <Activations A>
constexpr int kFields = kGroup / pack_of(A);  // code vectors in a block of 32 columns

// 32 columns as words in the order the kernels read them: see QuantizedRows.
template <Activations A>
inline void put_words(const std::int16_t* codes, int stride, std::int32_t* to) {
  constexpr int kWords = words_of(A);
  std::int32_t words[kWords];
  if constexpr (A == Activations::kInt16) {
    std::memcpy(words, codes, sizeof words);
  } else {
    std::int8_t bytes[sizeof words];
    if constexpr (A == Activations::kInt8) {
      for (int i = 0; i < kGroup; ++i) bytes[i] = static_cast<std::int8_t>(codes[i]);
    } else {  // x = 256 * high + low, both signed
      for (int i = 0; i < kGroup; ++i) bytes[i] = static_cast<std::int8_t>((codes[i] + 128) >> 8);
      for (int i = 0; i < kGroup; ++i) bytes[kGroup + i] = static_cast<std::int8_t>(codes[i]);
    }
    std::memcpy(words, bytes, sizeof words);
  }
  for (int i = 0; i < kWords; ++i) to[static_cast<std::ptrdiff_t>(i) * stride] = words[i];
}

template <class V, Activations A>
void quantize_as(const float* x, const QuantizedRows& to, int row) {
  using F = typename V::F;
  // 127 * 256 + 127: the greatest value whose high byte still rounds to 127.
  constexpr float kLargest = A == Activations::kInt8 ? 127.0F : 32639.0F;
  const int step = to.interleave;
  const int groups = to.cols / kGroup;
  const std::ptrdiff_t block = static_cast<std::ptrdiff_t>(row / step) * groups * step;
  std::int32_t* q = to.q + block * words_of(A) + row % step;
  const std::ptrdiff_t first = block + row % step;
  for (int g = 0; g < groups; ++g, q += static_cast<std::ptrdiff_t>(words_of(A)) * step) {
    const float* in = x + g * kGroup;
    F largest = V::set1(0.0F);
    for (int i = 0; i < kGroup; i += V::kWidth) largest = V::max(largest, V::abs(V::load(in + i)));
    const float amax = V::max_lane(largest);
    const float inverse = amax > 0.0F ? kLargest / amax : 0.0F;
    std::int16_t codes[kGroup];
    for (int i = 0; i < kGroup; i += V::kWidth) {
      V::store_int16(codes + i, V::round(V::mul(V::load(in + i), V::set1(inverse))));
    }
    std::int32_t total = 0;
    for (int i = 0; i < kGroup; ++i) total += codes[i];
    put_words<A>(codes, step, q);
    const std::ptrdiff_t at = first + static_cast<std::ptrdiff_t>(g) * step;
    to.scale[at] = amax / kLargest;
    to.isum[at] = total;
    to.sum[at] = to.scale[at] * static_cast<float>(total);
  }
}

template <class V>
void quantize(const float* x, const QuantizedRows& to, int row) {
  if constexpr (V::kQuads) {
    if (to.activations == Activations::kSplit16) {
      return quantize_as<V, Activations::kSplit16>(x, to, row);
    }
  } else {
    if (to.activations == Activations::kInt16) {
      return quantize_as<V, Activations::kInt16>(x, to, row);
    }
  }
  quantize_as<V, Activations::kInt8>(x, to, row);
}

// One bit plane of a block of 32 columns: field p of the plane holds the codes of `Pack` columns
// from Pack * p on, side by side in each lane.
template <class V, int Pack, int Bits, int Field>
inline __attribute__((always_inline)) typename V::I plane(const std::uint8_t* words) {
  constexpr int kWidth = 32 / Pack;        // bits between two columns
  constexpr int kPerWord = kWidth / Bits;  // fields in one 32-bit word
  constexpr int kAt = Field % kPerWord;
  const auto all = V::load_int(words + (Field / kPerWord) * V::kWidth * 4);
  const auto shifted = V::template shift_right16<Bits * kAt>(all);
  if constexpr (Bits == kWidth || (Pack == 2 && kAt == kPerWord - 1)) {
    return shifted;
  } else {
    constexpr int kMask = (1 << Bits) - 1;
    return V::template and16<Pack == 2 ? kMask : kMask * 257>(shifted);
  }
}

// Codes of field `Field`. 3, 5 and 6 bits lie in two planes.
template <class V, int Pack, int Bits, int Field>
inline __attribute__((always_inline)) typename V::I unpack(const std::uint8_t* words) {
  constexpr int kLow = Bits == 3 ? 2 : (Bits == 5 || Bits == 6) ? 4 : Bits;
  const typename V::I low = plane<V, Pack, kLow, Field>(words);
  if constexpr (kLow == Bits) {
    return low;
  } else {
    const auto high = plane<V, Pack, Bits - kLow, Field>(words + kLow * V::kWidth * 4);
    return V::or_int(low, V::template shift_left16<kLow>(high));
  }
}

// acc + the dot products of each lane's columns with one word of activations.
template <class V, Activations A>
inline __attribute__((always_inline)) typename V::I dot(typename V::I acc, typename V::I codes,
                                                        std::int32_t word) {
  if constexpr (A == Activations::kInt16) {
    return V::dot_pair(acc, codes, word);
  } else {
    return V::dot_quad(acc, codes, word);
  }
}

template <class V>
inline typename V::F load_scales(const std::uint8_t* p, bool wide) {
  return wide ? V::load(reinterpret_cast<const float*>(p))
              : V::load_f16(reinterpret_cast<const std::uint16_t*>(p));
}

// The end of a block of 32 columns: integer sums become fp32 and join the row's total.
template <class V, bool Symmetric>
inline __attribute__((always_inline)) typename V::F close_block(
    typename V::F acc, typename V::I dot, typename V::F scale, typename V::F bias,
    std::int32_t offset, const QuantizedRows& x, std::ptrdiff_t at) {
  if constexpr (Symmetric) dot = V::sub_int(dot, V::set1_int(x.isum[at] * offset));
  acc = V::fma(V::to_float(dot), V::mul(scale, V::set1(x.scale[at])), acc);
  if constexpr (!Symmetric) acc = V::fma(bias, V::set1(x.sum[at]), acc);
  return acc;
}

// Where the parts of a packed tile lie: codes of a group's blocks, then its scales and biases.
template <class V, int Bits, bool Symmetric>
struct TileLayout {
  static constexpr int kBlockBytes = Bits * 4 * V::kWidth;
  explicit TileLayout(const PackedView& w)
      : blocks(w.group_size / kGroup),
        scale_bytes(static_cast<std::size_t>(V::kWidth) * (w.wide_scales ? 4 : 2)),
        group_bytes(static_cast<std::size_t>(blocks) * kBlockBytes +
                    scale_bytes * (Symmetric ? 1 : 2)) {}
  int blocks;  // in a group
  std::size_t scale_bytes;
  std::size_t group_bytes;
};

inline constexpr int kPrefetchBytes = 1024;  // ahead of a packed tile, whose neighbour follows it

// Calls work(codes, scale, bias) for each block of 32 columns of a packed tile, in order.
template <class V, int Bits, bool Symmetric, class F>
inline __attribute__((always_inline)) void each_block(const PackedView& w, const std::uint8_t* tile,
                                                      F work) {
  const TileLayout<V, Bits, Symmetric> layout(w);
  for (int g = 0; g < w.cols / w.group_size; ++g, tile += layout.group_bytes) {
    const std::uint8_t* codes = tile;
    const std::uint8_t* scales = tile + layout.blocks * layout.kBlockBytes;
    const typename V::F scale = load_scales<V>(scales, w.wide_scales);
    typename V::F bias = V::set1(0.0F);
    if constexpr (!Symmetric) bias = load_scales<V>(scales + layout.scale_bytes, w.wide_scales);
    for (int b = 0; b < layout.blocks; ++b, codes += layout.kBlockBytes) {
      // A lone row waits for memory: the hardware's own prefetch reaches half of the bandwidth.
      for (int line = 0; line < layout.kBlockBytes; line += 64) {
        __builtin_prefetch(codes + kPrefetchBytes + line);
      }
      work(codes, scale, bias);
    }
  }
}

// Up to four rows straight from the packed tile: each code is unpacked once for all of them and
// used at once, each part of the activations in its own chain of additions, since a lone chain
// would wait for itself. Rows is the interleave; only the first `rows` are wanted.
template <class V, int Bits, bool Symmetric, Activations A, int Rows>
void linear_few(const PackedView& w, const std::uint8_t* tile, const QuantizedRows& x, int rows,
                float* out) {
  using F = typename V::F;
  using I = typename V::I;
  constexpr bool kSplit = A == Activations::kSplit16;
  const std::int32_t* q = x.q;
  F acc[Rows];
  for (int m = 0; m < Rows; ++m) acc[m] = V::set1(0.0F);
  std::ptrdiff_t at = 0;
  each_block<V, Bits, Symmetric>(
      w, tile, [&](const std::uint8_t* packed, F scale, F bias) __attribute__((always_inline)) {
        I sums[Rows];
        I low[Rows];
        for (int m = 0; m < Rows; ++m) sums[m] = low[m] = V::zero();
        unroll<kFields<A>>([&](auto field) __attribute__((always_inline)) {
          const I codes = unpack<V, pack_of(A), Bits, field.value>(packed);
          for (int m = 0; m < Rows; ++m) {
            sums[m] = dot<V, A>(sums[m], codes, q[field.value * Rows + m]);
            V::pin(sums[m]);
            if constexpr (kSplit) {
              low[m] = dot<V, A>(low[m], codes, q[(kFields<A> + field.value) * Rows + m]);
              V::pin(low[m]);
            }
          }
        });
        for (int m = 0; m < Rows; ++m) {
          if constexpr (kSplit) {
            sums[m] = V::add_int(V::template shift_left32<8>(sums[m]), low[m]);
          }
          acc[m] =
              close_block<V, Symmetric>(acc[m], sums[m], scale, bias, 1 << (Bits - 1), x, at + m);
        }
        q += words_of(A) * Rows;
        at += Rows;
      });
  for (int m = 0; m < Rows; ++m) {
    if (m < rows) V::store(out + m * 2 * V::kWidth, acc[m]);
  }
}

// Eight rows: the unpacked codes stay in registers while the parts of the activations take turns in
// one accumulator a row.
template <class V, int Bits, bool Symmetric, Activations A>
void linear_eight(const PackedView& w, const std::uint8_t* tile, const QuantizedRows& x, int rows,
                  float* out) {
  using F = typename V::F;
  using I = typename V::I;
  constexpr int kRows = kRowBlock;
  const std::int32_t* q = x.q;
  F acc[kRows];
  for (int m = 0; m < kRows; ++m) acc[m] = V::set1(0.0F);
  std::ptrdiff_t at = 0;
  each_block<V, Bits, Symmetric>(
      w, tile, [&](const std::uint8_t* packed, F scale, F bias) __attribute__((always_inline)) {
        I codes[kFields<A>];
        I sums[kRows];
        for (int m = 0; m < kRows; ++m) sums[m] = V::zero();
        unroll<kFields<A>>([&](auto field) __attribute__((always_inline)) {
          codes[field.value] = unpack<V, pack_of(A), Bits, field.value>(packed);
        });
        unroll<words_of(A)>([&](auto word) __attribute__((always_inline)) {
          for (int m = 0; m < kRows; ++m) {
            if constexpr (word.value == kFields<A>) {
              sums[m] = V::template shift_left32<8>(sums[m]);
            }
            sums[m] = dot<V, A>(sums[m], codes[word.value % kFields<A>], q[word.value * kRows + m]);
            V::pin(sums[m]);
          }
        });
        for (int m = 0; m < kRows; ++m) {
          acc[m] =
              close_block<V, Symmetric>(acc[m], sums[m], scale, bias, 1 << (Bits - 1), x, at + m);
        }
        q += words_of(A) * kRows;
        at += kRows;
      });
  for (int m = 0; m < kRows; ++m) {
    if (m < rows) V::store(out + m * 2 * V::kWidth, acc[m]);
  }
}

inline constexpr int kPanelBlocks = 8;  // 256 columns of two tiles stay in the first-level cache

// Two tiles unpacked, for many rows.
template <class V>
struct Panel {
  typename V::I codes[kPanelBlocks][kGroup / 2][2];
  typename V::F scale[kPanelBlocks][2];
  typename V::F bias[kPanelBlocks][2];
  std::int32_t offset;  // of symmetric codes
};

template <class V, int Bits, bool Symmetric, Activations A>
void fill_panel(const PackedView& w, const std::uint8_t* tile, int begin, int count, int side,
                Panel<V>& panel) {
  const TileLayout<V, Bits, Symmetric> layout(w);
  for (int i = 0; i < count; ++i) {
    const int block = begin + i;
    const std::uint8_t* group = tile + block / layout.blocks * layout.group_bytes;
    const std::uint8_t* codes = group + block % layout.blocks * layout.kBlockBytes;
    const std::uint8_t* scales = group + layout.blocks * layout.kBlockBytes;
    unroll<kFields<A>>([&](auto field) {
      panel.codes[i][field.value][side] = unpack<V, pack_of(A), Bits, field.value>(codes);
    });
    panel.scale[i][side] = load_scales<V>(scales, w.wide_scales);
    if constexpr (!Symmetric) {
      panel.bias[i][side] = load_scales<V>(scales + layout.scale_bytes, w.wide_scales);
    }
  }
}

// Rows [row, row + Rows) of one row block; `begin` is the panel's first block of columns. Split
// activations take their high bytes first: one accumulator, moved up by 8 bits in between.
template <class V, bool Symmetric, Activations A, int Rows, int Tiles>
void panel_rows(const Panel<V>& panel, int begin, int count, const QuantizedRows& x, int row,
                float* out) {
  using F = typename V::F;
  using I = typename V::I;
  const std::ptrdiff_t groups = x.cols / kGroup;
  std::ptrdiff_t at = (row / kRowBlock * groups + begin) * kRowBlock + row % kRowBlock;
  const std::int32_t* q =
      x.q + (row / kRowBlock * groups + begin) * kRowBlock * words_of(A) + row % kRowBlock;
  F acc[Rows][Tiles];
  for (int m = 0; m < Rows; ++m) {
    for (int t = 0; t < Tiles; ++t) {
      acc[m][t] = begin == 0 ? V::set1(0.0F) : V::load(out + ((row + m) * 2 + t) * V::kWidth);
    }
  }
  for (int i = 0; i < count; ++i, q += words_of(A) * kRowBlock, at += kRowBlock) {
    I sums[Rows][Tiles];
    for (int m = 0; m < Rows; ++m) {
      for (int t = 0; t < Tiles; ++t) sums[m][t] = V::zero();
    }
    // Unrolled: around a loop g++ copies every accumulator of a destructive dot product.
    unroll<words_of(A)>([&](auto word) __attribute__((always_inline)) {
      constexpr int kField = word.value % kFields<A>;
      I codes[Tiles];
      for (int t = 0; t < Tiles; ++t) {
        codes[t] = panel.codes[i][kField][t];
        V::pin(codes[t]);  // in a register, not read again for every row
      }
      for (int m = 0; m < Rows; ++m) {
        const std::int32_t xs = q[word.value * kRowBlock + m];
        for (int t = 0; t < Tiles; ++t) {
          if constexpr (word.value == kFields<A>) {
            sums[m][t] = V::template shift_left32<8>(sums[m][t]);
          }
          sums[m][t] = dot<V, A>(sums[m][t], codes[t], xs);
          V::pin(sums[m][t]);
        }
      }
    });
    for (int m = 0; m < Rows; ++m) {
      for (int t = 0; t < Tiles; ++t) {
        acc[m][t] = close_block<V, Symmetric>(acc[m][t], sums[m][t], panel.scale[i][t],
                                              panel.bias[i][t], panel.offset, x, at + m);
      }
    }
  }
  for (int m = 0; m < Rows; ++m) {
    for (int t = 0; t < Tiles; ++t) V::store(out + ((row + m) * 2 + t) * V::kWidth, acc[m][t]);
  }
}

template <class V, int Bits, bool Symmetric, Activations A, int Tiles>
void linear_panels(const PackedView& w, const std::uint8_t* const* tiles, const QuantizedRows& x,
                   int rows, float* out, void* scratch) {
  auto& panel = *static_cast<Panel<V>*>(scratch);
  const int blocks = w.cols / kGroup;
  panel.offset = 1 << (Bits - 1);
  for (int begin = 0; begin < blocks; begin += kPanelBlocks) {
    const int count = blocks - begin < kPanelBlocks ? blocks - begin : kPanelBlocks;
    for (int t = 0; t < Tiles; ++t) {
      fill_panel<V, Bits, Symmetric, A>(w, tiles[t], begin, count, t, panel);
    }
    int row = 0;
    for (; row + V::kRowTile <= rows; row += V::kRowTile) {
      panel_rows<V, Symmetric, A, V::kRowTile, Tiles>(panel, begin, count, x, row, out);
    }
    if (row + 4 <= rows) {
      panel_rows<V, Symmetric, A, 4, Tiles>(panel, begin, count, x, row, out);
      row += 4;
    }
    if (row + 2 <= rows) {
      panel_rows<V, Symmetric, A, 2, Tiles>(panel, begin, count, x, row, out);
      row += 2;
    }
    if (row < rows) panel_rows<V, Symmetric, A, 1, Tiles>(panel, begin, count, x, row, out);
  }
}

template <class V, int Bits, bool Symmetric, Activations A>
void linear_tiles(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows,
                  float* out, void* scratch) {
  const std::uint8_t* tiles[2] = {
      w.data + static_cast<std::size_t>(tile0) * w.tile_bytes,
      w.data + static_cast<std::size_t>(tile1 < 0 ? tile0 : tile1) * w.tile_bytes};
  if (rows > V::kDirectRows) {
    if (tile1 < 0) return linear_panels<V, Bits, Symmetric, A, 1>(w, tiles, x, rows, out, scratch);
    return linear_panels<V, Bits, Symmetric, A, 2>(w, tiles, x, rows, out, scratch);
  }
  for (int t = 0; t < (tile1 < 0 ? 1 : 2); ++t) {
    float* to = out + t * V::kWidth;
    if (x.interleave == 1) linear_few<V, Bits, Symmetric, A, 1>(w, tiles[t], x, rows, to);
    if (x.interleave == 2) linear_few<V, Bits, Symmetric, A, 2>(w, tiles[t], x, rows, to);
    if (x.interleave == 4) linear_few<V, Bits, Symmetric, A, 4>(w, tiles[t], x, rows, to);
    if constexpr (V::kDirectRows > 4) {
      if (x.interleave == kRowBlock) {
        linear_eight<V, Bits, Symmetric, A>(w, tiles[t], x, rows, to);
      }
    }
  }
}

template <class V, int Bits>
void linear_bits(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows,
                 float* out, void* scratch) {
  constexpr Activations kFaithful = V::kQuads ? Activations::kSplit16 : Activations::kInt16;
  if (w.activations == kFaithful) {
    if (w.symmetric) {
      return linear_tiles<V, Bits, true, kFaithful>(w, tile0, tile1, x, rows, out, scratch);
    }
    return linear_tiles<V, Bits, false, kFaithful>(w, tile0, tile1, x, rows, out, scratch);
  }
  if constexpr (V::fast(Bits) == Activations::kInt8) {
    constexpr Activations kFast = Activations::kInt8;
    if (w.symmetric) {
      return linear_tiles<V, Bits, true, kFast>(w, tile0, tile1, x, rows, out, scratch);
    }
    linear_tiles<V, Bits, false, kFast>(w, tile0, tile1, x, rows, out, scratch);
  }
}

template <class V>
void linear(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows, float* out,
            void* scratch) {
  switch (w.bits) {
    case 1:
      return linear_bits<V, 1>(w, tile0, tile1, x, rows, out, scratch);
    case 2:
      return linear_bits<V, 2>(w, tile0, tile1, x, rows, out, scratch);
    case 3:
      return linear_bits<V, 3>(w, tile0, tile1, x, rows, out, scratch);
    case 4:
      return linear_bits<V, 4>(w, tile0, tile1, x, rows, out, scratch);
    case 5:
      return linear_bits<V, 5>(w, tile0, tile1, x, rows, out, scratch);
    case 6:
      return linear_bits<V, 6>(w, tile0, tile1, x, rows, out, scratch);
    default:
      return linear_bits<V, 8>(w, tile0, tile1, x, rows, out, scratch);
  }
}

template <class V>
Activations activations(int bits, bool fast) {
  if (!fast) return V::kQuads ? Activations::kSplit16 : Activations::kInt16;
  return V::fast(bits);
}

}  // namespace
}  // namespace bodega::ops::cpu
