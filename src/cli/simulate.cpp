#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "api/json.h"
#include "base/bytes.h"
#include "base/errors.h"
#include "cli/simulate/fleet.h"
#include "cli/simulate/sim_report.h"
#include "cli/simulate/trace.h"
#include "cli/verb.h"
#include "cost/known_models.h"

namespace bodega::cli {
namespace {

struct SimulateFlags {
  std::string machine = "m4-max";
  std::string model = "8b";
  std::string mix = "chat";
  std::string trace;
  int trace_block_tokens = core::kBlockTokens;
  double rate = 1;
  int requests = 10'000;
  std::uint64_t seed = 1;
  std::string pool;
  std::string ssd = "32GiB";
  std::string policy = "worth";
  int chunk = 0;
  double max_gap = 2.2;
  int max_sequences = 256;
  int queue_size = 1000;
  int machines = 1;
  std::string routing = "prefix";
  bool json = false;
};

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorKind::kConfig, what); }

cache::EvictionPolicy policy_of(const std::string& name) {
  if (name == "worth") return cache::EvictionPolicy::kWorth;
  if (name == "lru") return cache::EvictionPolicy::kLeastRecent;
  return cache::EvictionPolicy::kFirstIn;
}

// What the machine's memory leaves beside weights and a tenth of head-room.
std::int64_t pool_bytes(const SimulateFlags& flags, const cost::MachineProfile& machine,
                        const cost::ModelWork& work) {
  if (!flags.pool.empty()) return static_cast<std::int64_t>(parse_bytes(flags.pool));
  return machine.memory_bytes - machine.memory_bytes / 10 - work.weight_bytes - work.head_bytes;
}

SimConfig config_of(const SimulateFlags& flags) {
  const auto machine = cost::find_machine(flags.machine);
  if (!machine) {
    std::string names;
    for (const auto& known : cost::known_machines()) names += ' ' + known.name;
    refuse("There is no machine \"" + flags.machine + "\"; there are:" + names + '.');
  }
  const auto work = cost::find_model(flags.model);
  if (!work) refuse("There is no model \"" + flags.model + "\": 135m, 8b, 32b or 70b.");
  SimConfig config;
  config.machine = *machine;
  config.work = *work;
  const std::int64_t blocks = pool_bytes(flags, *machine, *work) / work->block_bytes;
  if (blocks < 64) refuse("The pool holds less than 64 blocks of this model.");
  config.blocks = static_cast<int>(std::min<std::int64_t>(blocks, 4'000'000));
  config.disk_bytes = static_cast<std::int64_t>(parse_bytes(flags.ssd));
  config.policy = policy_of(flags.policy);
  config.fixed_chunk = flags.chunk;
  config.limits.max_step_tokens = 2048;
  config.limits.max_sequences = flags.max_sequences;
  config.limits.gap.factor = flags.max_gap;
  config.queue_size = flags.queue_size;
  return config;
}

SimSource source_of(const SimulateFlags& flags) {
  if (flags.trace.empty()) return make_mix(flags.mix, flags.rate, flags.requests, flags.seed);
  auto file = std::make_shared<std::ifstream>(flags.trace);
  if (!*file) refuse("Cannot read the trace " + flags.trace);
  return read_trace(std::move(file), flags.trace_block_tokens);
}

int simulate(const SimulateFlags& flags) {
  const Routing routing = flags.routing == "random" ? Routing::kRandom : Routing::kPrefix;
  Fleet fleet(config_of(flags), flags.machines, routing);
  fleet.run(source_of(flags));
  const SimStats stats = fleet.stats();
  if (flags.json) {
    fmt::print("{}\n", api::to_text(to_json(stats, flags.machines)));
  } else {
    fmt::print("{}", to_text(stats, flags.machines));
  }
  return 0;
}

}  // namespace

Run add_simulate(CLI::App& verb) {
  const auto flags = std::make_shared<SimulateFlags>();
  verb.add_option("--machine", flags->machine, "m1-max, m4-max, m3-ultra, h200 or two-cores");
  verb.add_option("--model", flags->model, "135m, 8b, 32b or 70b, at 4.5 bits a weight");
  verb.add_option("--mix", flags->mix, "chat, agents, documents or bursts");
  verb.add_option("--trace", flags->trace, "JSONL file in place of a mix");
  verb.add_option("--trace-block-tokens", flags->trace_block_tokens, "Tokens of a trace's block")
      ->check(CLI::Range(1, 65536));
  verb.add_option("--rate", flags->rate, "Requests a second")->check(CLI::PositiveNumber);
  verb.add_option("--requests", flags->requests, "How many")->check(CLI::Range(1, 100'000'000));
  verb.add_option("--seed", flags->seed, "Same seed, same result");
  verb.add_option("--pool", flags->pool, "Bytes of KV in memory; none: what the machine has");
  verb.add_option("--ssd", flags->ssd, "Bytes of KV on the SSD, 0 = none");
  verb.add_option("--policy", flags->policy, "Who is evicted: worth, lru or fifo")
      ->check(CLI::IsMember({"worth", "lru", "fifo"}));
  verb.add_option("--chunk", flags->chunk, "Rows of a step by a constant; 0 = by price")
      ->check(CLI::Range(0, 65536));
  verb.add_option("--max-gap", flags->max_gap, "Longest step over a plain decode step")
      ->check(CLI::Range(1.0, 1000.0));
  verb.add_option("--max-sequences", flags->max_sequences, "Running at once")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--queue-size", flags->queue_size, "Waiting on a machine, more are refused")
      ->check(CLI::Range(0, 1'000'000));
  verb.add_option("--machines", flags->machines, "Machines of the fleet")
      ->check(CLI::Range(1, 100'000));
  verb.add_option("--routing", flags->routing, "How the fleet routes: prefix or random")
      ->check(CLI::IsMember({"prefix", "random"}));
  verb.add_flag("--json", flags->json, "Print JSON");
  return [flags] { return simulate(*flags); };
}

}  // namespace bodega::cli
