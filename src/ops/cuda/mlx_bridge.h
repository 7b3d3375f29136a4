#pragma once

#include <mlx/mlx.h>
#include <mlx/version.h>

#include "ops/cuda/driver.h"

namespace bodega::ops::cuda {

// What only MLX's CUDA wheel exports, behind four calls: the plugin libbodega_cuda.so defines one
// object of this name, so that the program itself links with every wheel.
struct MlxBridge {
  static constexpr const char* kSymbol = "bodega_cuda_mlx_bridge";
  static constexpr int kVersion = MLX_VERSION_NUMERIC;

  int mlx_version;
  // Hands what MLX has recorded so far to its stream, and returns that stream.
  StreamHandle (*stream)(const mlx::core::Stream& stream);
  DeviceAddress (*address)(const mlx::core::array& array);
  // Gives `array` memory of ours: device memory of cuMemAllocAsync (device 0), or pinned memory
  // that MLX then takes for its own unified kind (device -1) and lets the host read in place.
  // `release` is told whether it gets unified memory back: MLX replaces the device kind by it when
  // the host reads.
  using Release = void (*)(DeviceAddress memory, StreamHandle stream, bool unified);
  void (*adopt)(mlx::core::array& array, DeviceAddress memory, std::size_t bytes, int device,
                StreamHandle stream, Release release);
};

// Loads the plugin from $BODEGA_CUDA_PLUGIN, the program's folder or the folder lib beside it. Null
// where there is none, or where it was built for another version of MLX.
const MlxBridge* find_bridge();

}  // namespace bodega::ops::cuda
