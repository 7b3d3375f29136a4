#pragma once

#include "model/checkpoint.h"
#include "ops/plan.h"

namespace bodega::model {

// Records the checkpoint's forward pass with the file of its architecture, and checks that no
// tensor was left unused. Throws Error(kBadModelFile) for an architecture there is no file for.
ops::Plan record_plan(const Checkpoint& checkpoint, int context_length);

}  // namespace bodega::model
