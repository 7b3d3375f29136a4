#pragma once

#include <memory>

#include "http/server.h"
#include "registry/registry.h"

namespace bodega::server {

// What the front tells of its models: each worker is asked, and their answers are put together. A
// worker that does not answer in time is reported so instead of being waited for.
class FrontStatus {
 public:
  FrontStatus(http::Loop& loop, const registry::Registry& registry)
      : loop_(loop), registry_(registry) {}

  using ExchangePtr = std::shared_ptr<http::Exchange>;
  void health(ExchangePtr exchange);
  void queue_stats(ExchangePtr exchange);
  void loaded_models(ExchangePtr exchange);
  void metrics(ExchangePtr exchange);
  void models(const ExchangePtr& exchange);
  void model(const registry::Worker& worker, const ExchangePtr& exchange);

 private:
  http::Loop& loop_;
  const registry::Registry& registry_;
};

}  // namespace bodega::server
