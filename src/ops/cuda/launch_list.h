#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ops/cuda/driver.h"
#include "ops/cuda/kernel_library.h"

namespace bodega::ops::cuda {

// The launches of a step, written down before they are made. A list that comes again to the byte
// (the next decode step of the same batch: its tables change, its launches do not) becomes a CUDA
// graph and costs one call instead of hundreds at 4 us each.
class LaunchList {
 public:
  explicit LaunchList(const Driver& driver) : driver_(driver) {}
  ~LaunchList();
  LaunchList(const LaunchList&) = delete;
  LaunchList& operator=(const LaunchList&) = delete;

  void clear();
  template <typename T>
  void add(const Kernel& kernel, Grid grid, unsigned threads, const T& arguments) {
    static_assert(std::is_trivially_copyable_v<T>);
    launches_.push_back({kernel.function, grid, threads, kernel.shared, arguments_.size()});
    const std::size_t at = arguments_.size();
    arguments_.resize(at + (sizeof(T) + 15) / 16 * 16);
    std::memcpy(arguments_.data() + at, &arguments, sizeof(T));
  }
  // Makes the launches, in order, on the stream.
  void submit(StreamHandle stream);

 private:
  static constexpr std::size_t kMaxGraphs = 48;
  static constexpr std::size_t kWorthAGraph = 16;  // launches
  struct Launch {
    FunctionHandle function;
    Grid grid;
    unsigned threads;
    unsigned shared;
    std::size_t arguments;  // offset
  };
  struct Graph {
    Hash128 key;
    GraphHandle graph = nullptr;  // null until the list has come a second time
  };

  Hash128 key() const;
  void launch_all(StreamHandle stream);
  GraphHandle capture();

  const Driver& driver_;
  std::vector<Launch> launches_;
  std::vector<std::uint8_t> arguments_;
  StreamHandle capturing_ = nullptr;
  std::list<Graph> graphs_;  // the latest first
  std::unordered_map<Hash128, std::list<Graph>::iterator, Hash128Hasher> known_;
};

}  // namespace bodega::ops::cuda
