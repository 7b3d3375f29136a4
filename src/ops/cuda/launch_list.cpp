#include "ops/cuda/launch_list.h"

namespace bodega::ops::cuda {

LaunchList::~LaunchList() {
  for (Graph& graph : graphs_) {
    if (graph.graph != nullptr) driver_.release(graph.graph);
  }
  if (capturing_ != nullptr) driver_.release(capturing_);
}

void LaunchList::clear() {
  launches_.clear();
  arguments_.clear();
}

// 128 bits of a good hash over everything a launch is: two lists with one key do not happen.
Hash128 LaunchList::key() const {
  Hasher128 hasher;
  for (const Launch& l : launches_) {
    hasher.add(reinterpret_cast<std::uintptr_t>(l.function));
    hasher.add((std::uint64_t{l.grid.x} << 32U) | l.grid.y);
    hasher.add((std::uint64_t{l.grid.z} << 32U) | l.threads);
  }
  hasher.add(std::as_bytes(std::span(arguments_)));
  return hasher.finish();
}

void LaunchList::launch_all(StreamHandle stream) {
  for (const Launch& l : launches_) {
    driver_.launch(l.function, l.grid, l.threads, l.shared, stream, arguments_.data() + l.arguments,
                   true);
  }
}

GraphHandle LaunchList::capture() {
  if (capturing_ == nullptr) capturing_ = driver_.make_stream();
  driver_.begin_capture(capturing_);
  try {
    launch_all(capturing_);
  } catch (...) {
    driver_.end_capture(capturing_);
    throw;
  }
  return driver_.end_capture(capturing_);
}

void LaunchList::submit(StreamHandle stream) {
  if (launches_.size() < kWorthAGraph) return launch_all(stream);
  const Hash128 own = key();
  const auto found = known_.find(own);
  if (found == known_.end()) {
    launch_all(stream);
    graphs_.push_front({own});
    known_[own] = graphs_.begin();
    if (graphs_.size() > kMaxGraphs) {
      if (graphs_.back().graph != nullptr) driver_.release(graphs_.back().graph);
      known_.erase(graphs_.back().key);
      graphs_.pop_back();
    }
    return;
  }
  graphs_.splice(graphs_.begin(), graphs_, found->second);
  Graph& graph = graphs_.front();
  if (graph.graph == nullptr) graph.graph = capture();
  if (graph.graph == nullptr) return launch_all(stream);
  driver_.launch(graph.graph, stream);
}

}  // namespace bodega::ops::cuda
