#include "ops/kv_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/errors.h"

namespace bodega::ops {
namespace {

namespace mx = mlx::core;

constexpr std::size_t kLead = 4096;  // MLX keeps a size in the 8 bytes before the data

// Zeroed memory that costs nothing until it is touched.
mx::array mapped_slab(const mx::Shape& shape, std::size_t bytes) {
  const std::size_t whole = bytes + kLead;
  void* base = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorKind::kUnavailable,
                "The system has no memory for the KV cache: lower --memory-budget.");
  }
  auto* header = reinterpret_cast<std::size_t*>(static_cast<char*>(base) + kLead - 8);
  *header = bytes;
  mx::allocator::Data data(mx::allocator::Buffer(header),
                           [base, whole](mx::allocator::Buffer) { munmap(base, whole); });
  return mx::array(std::move(data), shape, mx::float16);
}

}  // namespace

KvPool::KvPool(const KvLayout& layout, std::int64_t bytes, mx::Device device,
               std::int64_t slab_bytes)
    : layout_(layout) {
  blocks_ = static_cast<int>(std::max<std::int64_t>(1, bytes / layout.block_bytes()));
  blocks_per_slab_ = static_cast<int>(std::max<std::int64_t>(1, slab_bytes / layout.block_bytes()));
  for (int done = 0; done < blocks_; done += blocks_per_slab_) {
    const int count = std::min(blocks_per_slab_, blocks_ - done);
    const mx::Shape shape{count, layout.layers, 2, layout.kv_heads, kBlockTokens, layout.head_dim};
    if (device == mx::Device::cpu) {
      slabs_.push_back(mapped_slab(shape, static_cast<std::size_t>(count * layout.block_bytes())));
    } else {
      slabs_.push_back(mx::zeros(shape, mx::float16, device));
      mx::eval(slabs_.back());
    }
  }
}

}  // namespace bodega::ops
