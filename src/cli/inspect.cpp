#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "api/json.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "cli/verb.h"
#include "model/checkpoint.h"
#include "model/llama.h"
#include "ops/plan.h"
#include "server/default_model.h"

namespace bodega::cli {
namespace {

struct InspectFlags {
  std::string model;
  int context = 0;
  bool plan = false;
  bool json = false;
};

struct Inspection {
  model::ModelConfig config;
  std::string path;
  ops::Plan plan;
  std::uint64_t file_bytes = 0;
  std::uint64_t free_bytes = 0;
  int context = 0;

  // Tokens of KV that fit beside the weights into what is free now.
  std::int64_t tokens_that_fit() const {
    const std::int64_t room = static_cast<std::int64_t>(free_bytes) - plan.weight_bytes();
    return std::max<std::int64_t>(0, room / std::max<std::int64_t>(1, kv_bytes_per_token()));
  }
  std::int64_t kv_bytes_per_token() const { return plan.work().kv_bytes_per_token; }
};

Inspection inspect(const InspectFlags& flags) {
  Inspection found;
  const bool is_default = flags.model.empty() || server::is_default_model(flags.model);
  found.path = is_default ? server::default_model_path() : flags.model;
  const std::unique_ptr<model::Checkpoint> checkpoint = model::Checkpoint::open(found.path);
  found.config = checkpoint->config();
  found.context = flags.context > 0 ? std::min(flags.context, found.config.context_length)
                                    : found.config.context_length;
  found.plan = model::record_llama(*checkpoint, found.context);
  checkpoint->check_all_used();
  found.file_bytes = checkpoint->bytes();
  if (const auto memory = system_memory()) found.free_bytes = memory->available_bytes;
  return found;
}

std::string summary(const Inspection& found) {
  const model::ModelConfig& config = found.config;
  const ops::StepWork work = found.plan.work();
  const auto kv_context = static_cast<std::uint64_t>(found.kv_bytes_per_token()) *
                          static_cast<std::uint64_t>(found.context);
  return fmt::format(
      "model         {}\n"
      "architecture  {}, {} layers, hidden {}, {} heads on {} of keys and values, vocabulary {}\n"
      "context       {} tokens\n"
      "weights       {} in {} matrices\n"
      "a step        reads {} once for any number of rows, and {} where a token is sampled\n"
      "              {:.1f} MFLOP a row, {:.1f} MFLOP a sampled row\n"
      "keys, values  {} a token, {} for one full context\n"
      "memory        {} free now: {} tokens of KV fit beside the weights\n",
      found.path, config.architecture, config.layers, config.hidden_size, config.heads,
      config.kv_heads, config.vocab_size, found.context,
      format_bytes(static_cast<std::uint64_t>(found.plan.weight_bytes())),
      found.plan.matrices.size(), format_bytes(static_cast<std::uint64_t>(work.weight_bytes)),
      format_bytes(static_cast<std::uint64_t>(work.head_bytes)),
      static_cast<double>(work.flops_per_row) / 1e6,
      static_cast<double>(work.flops_per_sampled_row) / 1e6,
      format_bytes(static_cast<std::uint64_t>(found.kv_bytes_per_token())),
      format_bytes(kv_context), format_bytes(found.free_bytes), found.tokens_that_fit());
}

boost::json::object to_json(const Inspection& found) {
  const ops::StepWork work = found.plan.work();
  return {{"path", found.path},
          {"architecture", found.config.architecture},
          {"layers", found.config.layers},
          {"hidden_size", found.config.hidden_size},
          {"heads", found.config.heads},
          {"kv_heads", found.config.kv_heads},
          {"vocab_size", found.config.vocab_size},
          {"context_length", found.context},
          {"file_bytes", found.file_bytes},
          {"weight_bytes", found.plan.weight_bytes()},
          {"step_weight_bytes", work.weight_bytes},
          {"head_bytes", work.head_bytes},
          {"flops_per_row", work.flops_per_row},
          {"flops_per_sampled_row", work.flops_per_sampled_row},
          {"kv_bytes_per_token", work.kv_bytes_per_token},
          {"records", found.plan.records.size()},
          {"free_bytes", found.free_bytes},
          {"kv_tokens_that_fit", found.tokens_that_fit()}};
}

int run(const InspectFlags& flags) {
  const Inspection found = inspect(flags);
  if (flags.json) {
    fmt::print("{}\n", api::to_text(to_json(found)));
    return 0;
  }
  fmt::print("{}", summary(found));
  if (flags.plan) fmt::print("\n{}", found.plan.describe());
  return 0;
}

}  // namespace

Run add_inspect(CLI::App& verb) {
  const auto flags = std::make_shared<InspectFlags>();
  verb.add_option("MODEL", flags->model, "Folder or GGUF file; none: the default")
      ->envname("BODEGA_MODEL");
  verb.add_option("--context-length", flags->context, "Tokens to plan for, 0 = the model's")
      ->envname("BODEGA_CONTEXT_LENGTH");
  verb.add_flag("--plan", flags->plan, "Also print the plan, one line an operation")
      ->envname("BODEGA_PLAN");
  verb.add_flag("--json", flags->json, "Print JSON")->envname("BODEGA_JSON");
  return [flags] { return run(*flags); };
}

}  // namespace bodega::cli
