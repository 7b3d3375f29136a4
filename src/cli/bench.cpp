#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <random>

#include "api/json.h"
#include "base/errors.h"
#include "cli/bench_load.h"
#include "cli/bench_report.h"
#include "cli/verb.h"
#include "engine/load.h"
#include "server/default_model.h"

namespace bodega::cli {
namespace {

struct BenchFlags {
  std::string model;
  std::string against;
  std::string api_key;
  std::vector<int> streams{1, 8, 32};
  int prompt_tokens = 512;
  int output_tokens = 64;
  int repeats = 3;
  int threads = 0;
  std::string cpu_precision = "faithful";
  bool json = false;
};

using Load = std::function<std::vector<RequestTrace>(const LoadShape&)>;

// A first small round warms caches and connections up and is not counted.
std::vector<BenchRow> measure(const BenchFlags& flags, const Load& load) {
  unsigned seed = std::random_device{}();
  load({1, 16, 4, ++seed});
  std::vector<BenchRow> rows;
  for (const int streams : flags.streams) {
    std::vector<BenchRow> repeats;
    for (int i = 0; i < flags.repeats; ++i) {
      const LoadShape shape{streams, flags.prompt_tokens, flags.output_tokens, ++seed};
      const std::vector<RequestTrace> traces = load(shape);
      repeats.push_back(summarise(streams, traces));
      if (repeats.back().failed == streams) {
        throw Error(ErrorKind::kUnavailable, "Every request failed: " + traces.front().error);
      }
    }
    rows.push_back(median_row(repeats));
  }
  return rows;
}

void print(const BenchFlags& flags, const std::string& what, const std::vector<BenchRow>& rows) {
  if (flags.json) {
    const boost::json::object report{{"target", what},
                                     {"output_tokens", flags.output_tokens},
                                     {"repeats", flags.repeats},
                                     {"rows", to_json(rows)}};
    fmt::print("{}\n", api::to_text(report));
    return;
  }
  fmt::print("{}: {} tokens an answer, medians of {}\n{}", what, flags.output_tokens, flags.repeats,
             table(rows));
}

int bench_server(const BenchFlags& flags) {
  ServerAddress address = parse_url(flags.against);
  address.api_key = flags.api_key;
  print(flags, flags.against, measure(flags, [&](const LoadShape& shape) {
          return load_server(address, flags.model, shape);
        }));
  return 0;
}

int bench_engine(const BenchFlags& flags) {
  engine::LoadOptions options;
  const bool is_default = flags.model.empty() || server::is_default_model(flags.model);
  options.path = is_default ? server::default_model_path() : flags.model;
  options.threads = flags.threads;
  options.fast = flags.cpu_precision == "fast";
  engine::LoadedModel model = engine::load_model(options);
  print(flags, options.path + " (" + model.kernels + ")",
        measure(flags, [&](const LoadShape& shape) {
          return load_engine(*model.engine, model.config.vocab_size, shape);
        }));
  return 0;
}

}  // namespace

Run add_bench(CLI::App& verb) {
  const auto flags = std::make_shared<BenchFlags>();
  const auto option = [&](const char* name, auto& value, const char* help,
                          const char* environment) {
    return verb.add_option(name, value, help)->envname(environment)->capture_default_str();
  };
  option("MODEL", flags->model, "Path, or with --against the server's name for it", "BODEGA_MODEL");
  option("--against", flags->against, "URL of any OpenAI server", "BODEGA_AGAINST");
  option("--api-key", flags->api_key, "Its API key", "BODEGA_API_KEY");
  option("--streams", flags->streams, "Parallel streams, one row each", "BODEGA_STREAMS")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  option("--prompt-tokens", flags->prompt_tokens, "About so many tokens a prompt",
         "BODEGA_PROMPT_TOKENS")
      ->check(CLI::Range(1, 1000000));
  option("--tokens", flags->output_tokens, "Tokens an answer", "BODEGA_TOKENS")
      ->check(CLI::Range(1, 1000000));
  option("--repeats", flags->repeats, "Measurements a row", "BODEGA_REPEATS")
      ->check(CLI::Range(1, 1000));
  option("--threads", flags->threads, "CPU threads, 0 = automatic", "BODEGA_THREADS");
  option("--cpu-precision", flags->cpu_precision, "Activations on the CPU", "BODEGA_CPU_PRECISION")
      ->check(CLI::IsMember({"faithful", "fast"}));
  verb.add_flag("--json", flags->json, "Print JSON")->envname("BODEGA_JSON");
  return [flags] { return flags->against.empty() ? bench_engine(*flags) : bench_server(*flags); };
}

}  // namespace bodega::cli
