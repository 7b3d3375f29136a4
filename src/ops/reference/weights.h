#pragma once

#include <mlx/mlx.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/plan.h"

namespace bodega::ops::reference {

// Weights as stock MLX operations want them. On the CPU quantised matrices are widened to fp32 at
// load, because the twins are its yardstick and MLX's quantised kernels there are slower than BLAS;
// on a GPU they stay packed.
class Weights {
 public:
  // `backend` may be null; it lends the rows of matrices that only it holds.
  Weights(const Plan& plan, mlx::core::Device device, const Backend* backend);

  void load(MatrixId id);

  // x [T, cols] * W^T -> [T, rows], fp32
  mlx::core::array multiply(const mlx::core::array& x, MatrixId id) const;
  // Rows by index: [n] -> [n, cols], fp32
  mlx::core::array take(const mlx::core::array& rows, MatrixId id) const;
  mlx::core::array vector(VectorId id) const;

 private:
  struct Stored {
    mlx::core::array weight;  // dense fp32 / fp16 / bf16, or MLX's packed words
    std::optional<mlx::core::array> scales;
    std::optional<mlx::core::array> biases;
  };
  Stored load_dense(const Matrix& matrix) const;
  Stored load_packed(const Matrix& matrix) const;
  Stored borrowed(MatrixId id) const;
  bool packed_agrees(const Stored& stored, const WeightFormat& format);

  const Plan& plan_;
  mlx::core::Device device_;
  const Backend* backend_;
  std::vector<std::optional<Stored>> stored_;
  std::map<std::string, bool> packed_agrees_;  // by format and shape
};

}  // namespace bodega::ops::reference
