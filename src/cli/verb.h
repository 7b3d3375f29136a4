#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace bodega::cli {

// One file a verb: each declares its flags on the subcommand it is given and returns what to run
// once they have been read. What it returns is the exit code.
using Run = std::function<int()>;

Run add_serve(CLI::App& verb);
Run add_run(CLI::App& verb);
Run add_worker(CLI::App& verb);
Run add_doctor(CLI::App& verb);
Run add_inspect(CLI::App& verb);
Run add_bench(CLI::App& verb);
Run add_replay(CLI::App& verb);
Run add_simulate(CLI::App& verb);

}  // namespace bodega::cli
