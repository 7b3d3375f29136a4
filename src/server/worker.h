#pragma once

#include "server/worker_model.h"

namespace bodega::server {

// The worker process: answers on its Unix socket at once (503 while the model loads), until SIGTERM
// or until the front is gone. SIGTERM lets running answers end within a bound; a second one ends at
// once. Returns the exit code: 0 after an orderly end, 1 when the model could not be loaded.
int run_worker(const WorkerOptions& options, const ModelLoader& loader);

}  // namespace bodega::server
