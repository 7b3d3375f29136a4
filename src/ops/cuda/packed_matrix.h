#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cuda/driver.h"
#include "ops/cuda/kernels/args.h"
#include "ops/weight_source.h"

namespace bodega::ops::cuda {

// A matrix in fragment order (kernels/args.h) in host memory, as it is uploaded.
struct HostMatrix {
  int rows = 0;
  int cols = 0;
  int bits = 0;
  int group = 0;  // 32 or 64, as the kernels see it
  bool bf16 = false;
  bool pair = false;  // tiles of rows [0, rows / 2) and [rows / 2, rows) alternate
  int units = 0;
  int tiles = 0;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;

  // The row of the matrix that row `local` of a tile holds; -1 is padding.
  int row_of(int tile, int local) const;
  int code_bytes() const { return 128 * bits; }               // a unit
  int scale_bytes() const { return 64 * kUnitCols / group; }  // a unit
};

// Affine 4 and 8 bit in groups of 32, 64 or 128 with 16-bit scales, whole groups in a row.
bool packable(const WeightFormat& format, int cols);
HostMatrix pack(const WeightSource& source, bool pair, ThreadPool& pool);
// Row `row` of the matrix from its tile's codes and scales, [cols].
void unpack_row(const HostMatrix& shape, int row, const std::uint8_t* tile_codes,
                const std::uint8_t* tile_scales, float* values);
int tile_of(const HostMatrix& shape, int row);

// The same on the device.
class PackedMatrix {
 public:
  explicit PackedMatrix(HostMatrix host);

  PackedWeights view() const;
  int cols() const { return shape_.cols; }
  int group() const { return shape_.group; }
  int bits() const { return shape_.bits; }
  std::string definitions() const;  // of the kernels that read it
  void read_row(int row, float* values) const;

 private:
  HostMatrix shape_;  // without the data
  DeviceMemory codes_;
  DeviceMemory scales_;
};

}  // namespace bodega::ops::cuda
