#pragma once

#include <filesystem>
#include <string>

#include "cost/cost_model.h"

namespace bodega::engine {

// Keeps what a cost model has learnt between runs: a small file per machine and model in the cache
// folder. A missing or bad file is a first run; a folder that cannot be written is only logged.
class PriceBook {
 public:
  // `subject`: whatever changes the prices: model, device, kernels, threads. Without a folder
  // nothing is kept.
  PriceBook(const std::string& cache_folder, const std::string& subject);

  bool load(cost::CostModel& prices) const;
  void save(const cost::CostModel& prices) const;

 private:
  std::filesystem::path file_;
};

}  // namespace bodega::engine
