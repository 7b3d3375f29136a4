#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "ops/plan.h"

namespace bodega::ops {

// The memory of all KV blocks: preallocated slabs, fp16, zeroed. On the CPU a slab is mapped memory
// that the system commits page by page as blocks are first written.
class KvPool {
 public:
  // As many whole blocks as fit into `bytes`, at least one. Throws Error(kUnavailable) when the
  // memory is not to be had.
  KvPool(const KvLayout& layout, std::int64_t bytes, mlx::core::Device device,
         std::int64_t slab_bytes = std::int64_t{64} << 20);

  const KvLayout& layout() const { return layout_; }
  int blocks() const { return blocks_; }
  core::BlockRef ref(int block) const {
    return {block / blocks_per_slab_, block % blocks_per_slab_};
  }

  // [blocks, layers, 2, kv_heads, kBlockTokens, head_dim] (keys: see KvLayout::keys_by_dim). A step
  // that writes rebinds the handles, so that a later reader depends on it.
  std::vector<mlx::core::array>& slabs() { return slabs_; }

 private:
  KvLayout layout_;
  int blocks_ = 0;
  int blocks_per_slab_ = 0;
  std::vector<mlx::core::array> slabs_;
};

}  // namespace bodega::ops
