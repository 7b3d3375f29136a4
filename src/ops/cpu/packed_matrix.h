#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/weight_source.h"

namespace bodega::ops::cpu {

// A weight matrix in the kernels' own layout, made once at load.
//
// Rows are cut into tiles of `lanes`; a tile holds, group after group along the columns, the codes
// of each block of 32 columns (bits * 4 * lanes bytes: 32-bit words, one lane a row, bit planes as
// in linear_bodies.h), then the group's scales and, unless symmetric, its biases (`lanes` values
// each). Dense tiles hold `lanes` values a column. The last tile is padded with zero rows. `pair`:
// rows [0, rows/2) and [rows/2, rows) are tiled apart, so that gate and up tiles line up.
class PackedMatrix {
 public:
  static bool supports(const WeightFormat& format, int cols);

  struct Options {
    bool pair = false;
    bool fast = false;  // for int8 activations
  };
  PackedMatrix(const WeightSource& source, const Kernels& kernels, Options options,
               ThreadPool& pool);

  const PackedView& view() const { return view_; }
  int rows() const { return rows_; }
  int cols() const { return view_.cols; }
  int tiles() const { return tiles_; }
  std::size_t bytes() const { return bytes_; }

  void read_row(int row, float* values) const;  // dequantized, [cols]

 private:
  struct Free {
    void operator()(std::uint8_t* p) const;
  };
  int tile_of(int row) const;
  int first_row(int tile) const;
  int row_count(int tile) const;
  void pack_tile(const WeightSource& source, int tile);
  void pack_affine(const WeightSource& source, int tile, std::uint8_t* to) const;
  void pack_dense(const WeightSource& source, int tile, std::uint8_t* to) const;

  PackedView view_;
  int rows_ = 0;
  int lanes_ = 0;
  int half_ = 0;  // rows of one half of a pair; 0 = not a pair
  int tiles_ = 0;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::uint8_t, Free> data_;
};

}  // namespace bodega::ops::cpu
