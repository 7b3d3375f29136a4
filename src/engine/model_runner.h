#pragma once

#include <mlx/mlx.h>

#include <optional>

#include "engine/runner.h"
#include "ops/executor.h"

namespace bodega::engine {

// The Runner of a real model. Belongs to the thread that made it.
class ModelRunner : public Runner {
 public:
  ModelRunner(ops::Plan plan, mlx::core::Device device, ops::ExecutorOptions options);
  ~ModelRunner() override;

  void launch(const core::Batch& batch) override;
  std::span<const float> logits() override;
  int vocab_size() const override { return executor_.plan().vocab_size; }
  int block_count() const override { return pool_blocks_; }
  core::BlockRef block_ref(int block) const override;

  ops::Executor& executor() { return executor_; }

 private:
  ops::Executor executor_;
  int pool_blocks_ = 0;
  std::optional<mlx::core::array> logits_;
};

}  // namespace bodega::engine
