#pragma once

#include <map>
#include <mutex>

#include "ops/cuda/driver.h"

namespace bodega::ops::cuda {

// Pinned host memory, kept for the next step when an array lets go of it: to pin memory takes
// milliseconds. Any thread may give back.
class PinnedPool {
 public:
  static PinnedPool& shared();

  DeviceAddress take(std::size_t bytes);
  void give(DeviceAddress memory);

 private:
  std::mutex mutex_;
  std::map<DeviceAddress, std::size_t> sizes_;           // of all
  std::multimap<std::size_t, DeviceAddress> available_;  // by size
};

}  // namespace bodega::ops::cuda
