#pragma once

#include <memory>

#include "server/worker_model.h"

namespace bodega::server {

// The ModelLoader of a real worker: tokenizer, template and engine of the options' model.
std::unique_ptr<WorkerModel> load_engine_model(const WorkerOptions& options);

}  // namespace bodega::server
