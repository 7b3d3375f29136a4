#pragma once

#include <string>
#include <vector>

#include "cli/bench_report.h"
#include "cli/client.h"
#include "engine/engine.h"

namespace bodega::cli {

// How much work one measurement is.
struct LoadShape {
  int streams = 1;
  int prompt_tokens = 512;
  int output_tokens = 64;
  unsigned seed = 1;  // another seed, other prompts: no prefix cache can help
};

// Streams against any OpenAI server, all on one thread. The prompt is words; the server says how
// many tokens they are.
std::vector<RequestTrace> load_server(const ServerAddress& address, const std::string& model,
                                      const LoadShape& shape);

// The same work for an engine in this process, with random token ids as prompts.
std::vector<RequestTrace> load_engine(engine::Engine& engine, int vocab_size,
                                      const LoadShape& shape);

}  // namespace bodega::cli
