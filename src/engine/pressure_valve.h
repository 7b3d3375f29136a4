#pragma once

#include <functional>

#include "base/pressure.h"
#include "cache/kv_cache.h"
#include "engine/runner.h"

namespace bodega::engine {

// Gives the memory of KV blocks that nobody holds back to the system while it is short of memory,
// the least worth first, and takes it again when it has been calm for a while. Never touches what
// running requests hold, nor the blocks that one request at full length needs.
class PressureValve {
 public:
  using Signal = std::function<MemoryPressure()>;

  // `signal` may be empty: nothing happens then.
  PressureValve(cache::KvCache& cache, Runner& runner, Signal signal, int least_blocks);

  void poll(double now_s);  // looks once a second at most
  MemoryPressure level() const { return level_; }
  // When to look again although nothing runs; infinite when there is nothing to watch.
  double next_look_s() const;

 private:
  void give_back(int blocks);
  void take_again(int blocks);

  cache::KvCache& cache_;
  Runner& runner_;
  Signal signal_;
  int least_blocks_;
  MemoryPressure level_ = MemoryPressure::kNone;
  double looked_s_ = 0;
  double pressed_s_ = 0;  // when there was pressure last
};

}  // namespace bodega::engine
