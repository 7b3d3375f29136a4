#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>

#include "base/errors.h"
#include "base/log.h"
#include "cli/verb.h"
#include "cli/version.h"

namespace {

using bodega::cli::Run;

struct Verb {
  const char* name;
  const char* help;
  Run (*add)(CLI::App&);
  bool hidden = false;
};

constexpr auto kVerbs = std::to_array<Verb>({
    {"serve", "Serve models over HTTP", bodega::cli::add_serve},
    {"run", "Chat with a model in the terminal", bodega::cli::add_run},
    {"doctor", "Measure this machine and check its kernels", bodega::cli::add_doctor},
    {"inspect", "Show what a model needs and how it is computed", bodega::cli::add_inspect},
    {"bench", "Measure speed, in process or against a server", bodega::cli::add_bench},
    {"replay", "Run a logged request again and compare every token", bodega::cli::add_replay},
    {"simulate", "Plan capacity and judge policies without a device", bodega::cli::add_simulate},
    {"worker", "Internal: run one model for the server", bodega::cli::add_worker, true},
});

int fail(const bodega::Error& error) {
  fmt::print(stderr, "bodega: {}\n", error.what());
  return error.kind() == bodega::ErrorKind::kConfig ? 2 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Language models on the memory that your CPU and GPU share.", "bodega");
  app.set_version_flag("--version", bodega::cli::version_text());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  Run chosen;
  for (const Verb& verb : kVerbs) {
    CLI::App* command = app.add_subcommand(verb.name, verb.help);
    if (verb.hidden) command->group("");
    command->final_callback([&chosen, run = verb.add(*command)] { chosen = run; });
  }
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const bodega::Error& error) {
    return fail(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bodega: {}\n", error.what());
    return 1;
  }
}
