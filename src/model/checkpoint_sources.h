#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "model/mapped_file.h"
#include "ops/weight_source.h"

namespace bodega::model {

// Where a tensor's bytes lie.
struct TensorBytes {
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;
};

// A matrix of floats, row by row.
ops::WeightSourcePtr dense_source(const TensorBytes& values, ops::FloatType type, int rows,
                                  int cols);

// ggml blocks of 32 values ("Q4_0", "Q4_1", "Q8_0") as affine groups of 32: Q4_0 has the bias
// -8 * scale, Q8_0 unsigned codes and the bias -128 * scale.
ops::WeightSourcePtr gguf_source(const TensorBytes& blocks, const std::string& type, int rows,
                                 int cols);

// What mlx.core.quantize writes: codes packed into little-endian words, low bits first, and per
// group a scale and (affine only) a bias.
struct MlxTensors {
  TensorBytes codes;
  TensorBytes scales;
  std::optional<TensorBytes> biases;
};
ops::WeightSourcePtr mlx_source(const MlxTensors& tensors, const ops::WeightFormat& format,
                                int rows, int cols);

}  // namespace bodega::model
