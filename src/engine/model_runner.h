#pragma once

#include <mlx/mlx.h>

#include <optional>
#include <vector>

#include "engine/price_book.h"
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

  std::span<std::byte> block_memory(int block) override;
  void release_memory(int block) override;
  std::string identity() const override { return executor_.kernels(); }
  cost::CostModel* prices() override { return prices_ ? &*prices_ : nullptr; }

  // Knows the price of its steps from here on: what the book has, else measured now, in less than
  // two seconds, with steps that nobody asked for. The book is written again at the end.
  void learn_prices(PriceBook book);

  ops::Executor& executor() { return executor_; }

 private:
  ops::Executor executor_;
  int pool_blocks_ = 0;
  bool mapped_ = false;            // slabs are plain pages of this process
  std::vector<std::byte*> slabs_;  // where each begins; empty when the host may not touch them
  std::optional<mlx::core::array> logits_;
  std::optional<PriceBook> book_;
  std::optional<cost::CostModel> prices_;
};

}  // namespace bodega::engine
