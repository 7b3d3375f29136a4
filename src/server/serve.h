#pragma once

#include "server/options.h"

namespace bodega::server {

// Runs the front until SIGTERM or SIGINT: binds the port, starts one worker a model, relays.
// Returns the exit code: 0 after a clean drain, 1 when a model could not be loaded.
// Throws Error(kConfig) when the port cannot be bound; nothing has been loaded then.
int serve(const ServeOptions& options);

}  // namespace bodega::server
