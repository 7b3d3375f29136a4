#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "ops/records.h"
#include "ops/weight_source.h"

namespace bodega::ops {

using core::kBlockTokens;  // the cache and the kernels must mean the same block

// One KV block holds kBlockTokens tokens of all layers of a group, contiguous:
// [layers, 2 (k, v), kv_heads, kBlockTokens, head_dim] in fp16.
struct KvLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  // Inside a block keys lie [head_dim, kBlockTokens] instead of [kBlockTokens, head_dim]: what the
  // backend's attention wants.
  bool keys_by_dim = false;

  std::int64_t head_elements() const { return std::int64_t{kBlockTokens} * head_dim; }
  std::int64_t layer_elements() const { return 2 * kv_heads * head_elements(); }
  std::int64_t block_elements() const { return layers * layer_elements(); }
  std::int64_t block_bytes() const { return 2 * block_elements(); }
  // Element index inside a block of (layer, k or v, head), token 0.
  std::int64_t head_offset(int layer, int kv, int head) const {
    return layer * layer_elements() + (kv * std::int64_t{kv_heads} + head) * head_elements();
  }
};

struct Slot {
  std::string name;
  int cols = 0;
};

struct Matrix {
  std::string name;
  int rows = 0;
  int cols = 0;
  WeightFormat format;
  WeightSourcePtr source;  // dropped once a device has its own layout of it
};

struct NamedVector {
  std::string name;
  std::vector<float> values;
};

// Bytes and operations of one step, for the cost model and `inspect`.
struct StepWork {
  std::int64_t weight_bytes = 0;  // read once a step, however many rows
  std::int64_t flops_per_row = 0;
  std::int64_t head_bytes = 0;  // lm_head, read when any row is sampled
  std::int64_t flops_per_sampled_row = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t flops_per_kv_token = 0;  // of one row's attention over one cached token
};

// A recorded forward pass: what to compute, with what. Immutable once a model has recorded it,
// except that sources are dropped while weights load.
struct Plan {
  std::vector<Slot> slots;
  std::vector<Matrix> matrices;
  std::vector<NamedVector> vectors;
  std::vector<Record> records;
  std::vector<KvLayout> kv_groups;
  int hidden_size = 0;
  int vocab_size = 0;
  int context_length = 0;

  StepWork work() const;
  std::int64_t weight_bytes() const;  // as stored in the checkpoint
  std::string describe() const;       // a table, one line a record, for `inspect`
  // Throws Error(kBadModelFile) when a record's slots and matrices do not fit each other.
  void check() const;
};

// Helps a model file to record: every call adds one thing and returns its index.
class PlanBuilder {
 public:
  SlotId slot(std::string name, int cols);
  MatrixId matrix(std::string name, WeightSourcePtr source);
  VectorId vector(std::string name, std::vector<float> values);
  void add(Record record) { plan_.records.push_back(std::move(record)); }
  int kv_group(KvLayout layout);
  Plan finish(int hidden_size, int vocab_size, int context_length);  // checks

 private:
  Plan plan_;
};

}  // namespace bodega::ops
