#include "engine/model_runner.h"

#include <utility>
#include <vector>

namespace bodega::engine {

namespace mx = mlx::core;

ModelRunner::ModelRunner(ops::Plan plan, mx::Device device, ops::ExecutorOptions options)
    : executor_(std::move(plan), device, options), pool_blocks_(executor_.pool().blocks()) {}

ModelRunner::~ModelRunner() {
  mx::synchronize();  // a step in flight still uses the executor
}

void ModelRunner::launch(const core::Batch& batch) {
  logits_ = executor_.step(batch);
  // The slabs too: a step that samples nothing still writes keys and values.
  std::vector<mx::array> wanted = executor_.pool().slabs();
  if (logits_->size() > 0) wanted.push_back(*logits_);
  mx::async_eval(std::move(wanted));
}

std::span<const float> ModelRunner::logits() {
  if (!logits_) return {};
  if (logits_->size() == 0) {
    for (mx::array& slab : executor_.pool().slabs()) slab.wait();
    return {};
  }
  logits_->wait();
  return {logits_->data<float>(), logits_->size()};
}

core::BlockRef ModelRunner::block_ref(int block) const { return executor_.pool().ref(block); }

}  // namespace bodega::engine
