#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/weight_source.h"

namespace bodega::ops::metal {

// How the Metal kernels want a weight matrix (kernels/quant_linear.metal): blocks of 32 outputs; in
// a block, group after group of columns, the codes as fragments of 8x8 matrices, then a scale and a
// bias for each output. Written once at load, straight into memory that the GPU reads.
struct PackedLayout {
  int bits = 0;        // 4 (for 1 to 4) or 8 (for 5 to 8); 16 = dense
  int codes = 0;       // 0 = whole numbers, 1 = small floats of the mx formats
  int group_size = 0;  // 32 for dense
  int scale_kind = 0;  // 0 = fp16, 1 = bf16, 2 = fp32; of dense weights the type itself
  int rows = 0;
  int cols = 0;
  bool pair = false;  // a block holds 16 gate rows and the 16 up rows that belong to them

  int blocks() const;
  int groups() const { return cols / group_size; }
  std::size_t code_bytes() const { return static_cast<std::size_t>(group_size) * bits * 4; }
  std::size_t group_bytes() const;
  std::size_t block_bytes() const { return group_bytes() * groups(); }
  std::size_t bytes() const { return block_bytes() * blocks(); }
  // Matrix row of an output of a block, or -1 for padding.
  int row_of(int block, int output) const;
};

bool packable(const WeightFormat& format, int cols);

// Reads all scales once: halves that do not hold them are widened.
PackedLayout layout_for(const WeightSource& source, bool pair);

// Writes one block, layout.block_bytes() at `to`. Blocks are independent of each other.
void pack_block(const WeightSource& source, const PackedLayout& layout, int block,
                std::uint8_t* to);

// A row back as numbers, [cols]; `data` is the whole matrix.
void read_packed_row(const PackedLayout& layout, const std::uint8_t* data, int row, float* values);

}  // namespace bodega::ops::metal
