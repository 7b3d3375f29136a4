#pragma once

#include "cost/cost_model.h"
#include "engine/runner.h"
#include "ops/plan.h"

namespace bodega::engine {

cost::ModelWork work_of(const ops::Plan& plan);

// Where a model that has never run here starts from, before any measurement.
cost::MachineProfile guessed_machine();

// Measures what steps of one to some hundred rows, and attention over a longer context, take with
// this runner, in about a second. Uses its blocks: call before anything is in them.
cost::CostModel calibrate(Runner& runner, const cost::ModelWork& work);

}  // namespace bodega::engine
