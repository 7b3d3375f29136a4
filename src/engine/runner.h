#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/batch.h"
#include "cost/cost_model.h"

namespace bodega::engine {

// Turns a batch into logits. `launch` starts the device and returns at once; `logits` waits for it.
// One step is in flight at a time; both are called on the engine's thread only.
class Runner {
 public:
  virtual ~Runner() = default;

  // `batch` stays as it is until logits() has returned. What either throws ends the requests of
  // this step only; the next launch must work.
  virtual void launch(const core::Batch& batch) = 0;

  // fp32 logits of batch.sampled_rows, [S, vocab], valid until the next launch.
  virtual std::span<const float> logits() = 0;

  virtual int vocab_size() const = 0;
  virtual int block_count() const = 0;                    // blocks in the KV pool
  virtual core::BlockRef block_ref(int block) const = 0;  // pool index -> (slab, offset)
  // The bytes of a block, all layers in one range, for the SSD; empty where the host cannot reach
  // them. Touched between steps, and only in blocks that no step in flight reads or writes.
  virtual std::span<std::byte> block_memory(int /*block*/) { return {}; }
  // Nothing in this block is wanted any more: its memory may go back to the system until the block
  // is written again.
  virtual void release_memory(int /*block*/) {}
  // What the bytes of a block depend on beside the model: device, kernels, layout.
  virtual std::string identity() const { return {}; }
  // What a step costs here; the loop corrects it from every step. Null: unknown.
  virtual cost::CostModel* prices() { return nullptr; }
};

}  // namespace bodega::engine
