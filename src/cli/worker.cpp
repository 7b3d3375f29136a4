#include "server/worker.h"

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/verb.h"
#include "server/worker_engine_model.h"

namespace bodega::cli {

// The front writes this command line from the options table and the worker reads it back with the
// same.
Run add_worker(CLI::App& verb) {
  verb.prefix_command();
  return [&verb] {
    init_logging("worker");
    return server::run_worker(server::parse_worker_arguments(verb.remaining()),
                              server::load_engine_model);
  };
}

}  // namespace bodega::cli
