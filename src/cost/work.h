#pragma once

#include <cstdint>

namespace bodega::cost {

// What a model asks of a machine, counted from its plan.
struct ModelWork {
  std::int64_t weight_bytes = 0;  // read once a step, however many rows
  std::int64_t flops_per_row = 0;
  std::int64_t head_bytes = 0;  // read when any row is sampled
  std::int64_t flops_per_sampled_row = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t flops_per_kv_token = 0;  // of one row's attention over one cached token
  std::int64_t block_bytes = 0;         // one KV block of all layers
};

// What one step does.
struct StepShape {
  int rows = 0;
  int sampled_rows = 0;
  std::int64_t kv_tokens = 0;  // cached tokens that are read: every sequence's context once
  std::int64_t kv_pairs = 0;   // (row, key) pairs of attention

  // A sequence with `count` rows from `position` on.
  void add_rows(int position, int count) {
    rows += count;
    kv_tokens += position + count;
    kv_pairs += std::int64_t{count} * position + std::int64_t{count} * (count + 1) / 2;
  }
  StepShape with_rows(int position, int count) const {
    StepShape more = *this;
    more.add_rows(position, count);
    return more;
  }
};

}  // namespace bodega::cost
