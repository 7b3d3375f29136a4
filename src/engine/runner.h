#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/batch.h"

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
};

}  // namespace bodega::engine
