#include "engine/load.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/cpu.h"
#include "base/errors.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/pressure.h"
#include "engine/model_runner.h"
#include "model/checkpoint.h"
#include "model/record.h"

namespace bodega::engine {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLeastKvBytes = 64 * kMiB;
constexpr std::int64_t kMostKvBytes = 16 * 1024 * kMiB;
constexpr std::int64_t kMostSsdBytes = 32 * 1024 * kMiB;

std::shared_ptr<const text::Tokenizer> make_tokenizer(const model::Checkpoint& checkpoint) {
  if (const auto json = checkpoint.tokenizer_json()) return text::Tokenizer::from_json(*json);
  if (const auto vocabulary = checkpoint.gguf_vocabulary()) {
    return text::Tokenizer::from_gguf(*vocabulary);
  }
  throw Error(ErrorKind::kBadModelFile, "The model has no tokenizer.");
}

// The KV pool's share: what a budget leaves, or a third of what the machine has free, but no more
// than every sequence at full length could use.
std::int64_t kv_bytes(const LoadOptions& options, const ops::Plan& plan,
                      std::int64_t weight_bytes) {
  std::int64_t bytes = 1024 * kMiB;
  if (options.memory_bytes > 0) {
    bytes = options.memory_bytes - weight_bytes;
    if (bytes < kLeastKvBytes) {
      throw Error(ErrorKind::kConfig, "The memory budget leaves no room for the KV cache.",
                  "memory_budget");
    }
  } else if (const std::optional<SystemMemory> memory = system_memory()) {
    bytes = (static_cast<std::int64_t>(memory->available_bytes) - weight_bytes) / 3;
  }
  std::int64_t token_bytes = 0;
  for (const ops::KvLayout& group : plan.kv_groups) {
    token_bytes += group.block_bytes() / ops::kBlockTokens;
  }
  const std::int64_t useful =
      token_bytes * plan.context_length * std::max(1, options.engine.max_sequences);
  return std::clamp(std::min(bytes, useful), std::min(useful, kLeastKvBytes), kMostKvBytes);
}

// The SSD rung's share: a tenth of what is free, or nothing where that cannot be told.
std::int64_t ssd_bytes(const LoadOptions& options) {
  if (!options.ssd_cache || options.cache_folder.empty()) return 0;
  if (options.ssd_bytes > 0) return options.ssd_bytes;
  std::error_code error;
  std::filesystem::create_directories(options.cache_folder, error);
  const std::filesystem::space_info space = std::filesystem::space(options.cache_folder, error);
  if (error) return 0;
  return std::min(static_cast<std::int64_t>(space.available / 10), kMostSsdBytes);
}

std::string fingerprint_of(const model::Checkpoint& checkpoint, const std::string& chat_template,
                           const std::string& kernels) {
  Hasher128 hasher;
  hasher.add(std::string_view(checkpoint.content_hash()));
  hasher.add(std::string_view(chat_template)).add(std::string_view(kernels));
  return "fp_" + to_hex(hasher.finish()).substr(0, 16);
}

}  // namespace

LoadedModel load_model(LoadOptions options) {
  const std::unique_ptr<model::Checkpoint> checkpoint = model::Checkpoint::open(options.path);
  LoadedModel loaded;
  loaded.config = checkpoint->config();
  if (!options.chat_template.empty()) loaded.config.chat_template = options.chat_template;
  loaded.tokenizer = make_tokenizer(*checkpoint);
  if (!loaded.config.chat_template.empty()) {
    loaded.chat_template = std::make_shared<text::ChatTemplate>(
        loaded.config.chat_template,
        text::TemplateOptions{loaded.config.bos_token, loaded.config.eos_token});
  }
  loaded.context_length = loaded.config.context_length;
  if (options.context_length > 0) {
    loaded.context_length = std::min(loaded.context_length, options.context_length);
  }
  loaded.weight_bytes = checkpoint->bytes();
  options.engine.context_length = loaded.context_length;
  options.engine.end_tokens = loaded.config.end_tokens;
  options.engine.model_salt = checkpoint->content_hash();
  options.engine.memory_pressure = system_memory_pressure;
  options.engine.disk_bytes = ssd_bytes(options);
  options.engine.disk_folder = options.cache_folder + "/kv";

  // The engine's constructor waits for this lambda, which runs on the engine's own thread.
  const auto make_runner = [&]() -> std::unique_ptr<Runner> {
    ops::Plan plan = model::record_plan(*checkpoint, loaded.context_length);
    ops::ExecutorOptions executor;
    executor.kv_bytes = kv_bytes(options, plan, static_cast<std::int64_t>(loaded.weight_bytes));
    executor.threads = options.threads;
    executor.fast = options.fast;
    loaded.kv_bytes = executor.kv_bytes;
    auto runner =
        std::make_unique<ModelRunner>(std::move(plan), mlx::core::default_device(), executor);
    loaded.kernels = runner->executor().kernels();
    loaded.exact = runner->executor().exact();
    runner->learn_prices({options.cache_folder, options.engine.model_salt + loaded.kernels + ' ' +
                                                    std::to_string(executor.threads) + ' ' +
                                                    std::to_string(cpu_count())});
    return runner;
  };
  loaded.engine = std::make_unique<Engine>(options.engine, loaded.tokenizer, make_runner);
  loaded.fingerprint = fingerprint_of(*checkpoint, loaded.config.chat_template, loaded.kernels);
  return loaded;
}

}  // namespace bodega::engine
