#pragma once

#include "model/checkpoint.h"
#include "ops/plan.h"

namespace bodega::model {

// Records the forward pass of the Llama family: Llama 2 and 3, SmolLM2, Mistral (sliding window),
// Qwen2 (q, k, v bias), Qwen3 (q and k norm). `context_length` is what will be served.
ops::Plan record_llama(const Checkpoint& checkpoint, int context_length);

}  // namespace bodega::model
