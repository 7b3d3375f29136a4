#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "model/config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace bodega::engine {

struct LoadOptions {
  std::string path;               // a folder or a GGUF file
  std::string chat_template;      // text in place of the model's own; "" = the model's
  int context_length = 0;         // wanted; capped by the model's
  std::int64_t memory_bytes = 0;  // weights and KV together; 0 = decided by the machine
  int threads = 0;                // 0 = decided by the machine
  bool fast = false;              // int8 activations on the CPU
  std::string cache_folder;       // prices and KV blocks are kept here; "" = nowhere
  bool ssd_cache = true;
  std::int64_t ssd_bytes = 0;  // 0 = a tenth of the free disk, at most 32 GiB
  EngineConfig engine;         // context_length, model_salt and end_tokens are filled in
};

// A model on its device, with the engine that runs it.
struct LoadedModel {
  model::ModelConfig config;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat_template;  // null when there is none
  std::unique_ptr<Engine> engine;
  int context_length = 0;
  std::string fingerprint;         // of weights, tokenizer, template, kernels and instruction set
  std::uint64_t weight_bytes = 0;  // as stored
  std::int64_t kv_bytes = 0;
  std::string kernels;  // "cpu avx2"
  bool exact = false;   // every operation runs a kernel of ours: equal to the bit
};

// Throws Error: kBadModelFile for a file that may not be believed, kUnavailable for no memory.
LoadedModel load_model(LoadOptions options);

}  // namespace bodega::engine
