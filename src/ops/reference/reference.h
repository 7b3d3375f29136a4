#pragma once

#include <mlx/mlx.h>

#include "core/batch.h"
#include "ops/backend.h"
#include "ops/reference/weights.h"

// The twins: every operation in stock MLX, in fp32, on any device. They define what the kernels
// compute, and run in their place where a device has none.
namespace bodega::ops::reference {

struct Context {
  const Plan& plan;
  const core::Batch& batch;
  const Weights& weights;
  KvPool& pool;
  StepArrays& arrays;
  mlx::core::Device device;
};

void run(const Record& record, const Context& context);

void embed(const Embed& record, const Context& context);
void quant_linear(const QuantLinear& record, const Context& context);
void rope_and_cache_write(const RopeAndCacheWrite& record, const Context& context);
void paged_attention(const PagedAttention& record, const Context& context);
void moe(const Moe& record, const Context& context);
void lm_head(const LmHead& record, const Context& context);

// Over the last axis; also used by the q and k norms.
mlx::core::array rms_norm(const mlx::core::array& x, const Norm& norm, const Context& context);
mlx::core::array apply_glu(Epilogue epilogue, const mlx::core::array& y);

}  // namespace bodega::ops::reference
