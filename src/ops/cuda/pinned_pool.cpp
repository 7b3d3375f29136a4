#include "ops/cuda/pinned_pool.h"

#include <algorithm>
#include <bit>

namespace bodega::ops::cuda {

PinnedPool& PinnedPool::shared() {
  static auto* const pool = new PinnedPool;  // outlives the arrays that give back at exit
  return *pool;
}

DeviceAddress PinnedPool::take(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = available_.lower_bound(bytes);
  if (found != available_.end()) {
    const DeviceAddress memory = found->second;
    available_.erase(found);
    return memory;
  }
  const std::size_t whole = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
  const auto memory = reinterpret_cast<DeviceAddress>(Driver::find()->allocate_host(whole));
  sizes_[memory] = whole;
  return memory;
}

void PinnedPool::give(DeviceAddress memory) {
  const std::scoped_lock lock(mutex_);
  available_.emplace(sizes_.at(memory), memory);
}

}  // namespace bodega::ops::cuda
