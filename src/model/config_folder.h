#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "model/config.h"
#include "model/config_json.h"

namespace bodega::model {

// The texts beside the weights of a Hugging Face folder; all but config.json may be missing.
struct FolderTexts {
  std::string config;
  std::optional<std::string> generation_config;
  std::optional<std::string> tokenizer_config;
  std::optional<std::string> special_tokens_map;
  std::optional<std::string> tokenizer;           // tokenizer.json
  std::optional<std::string> chat_template;       // chat_template.jinja
  std::optional<std::string> chat_template_json;  // chat_template.json
};

// The decoder's numbers from config.json. Throws Error(kBadModelFile) for another architecture and,
// by name, for every setting that changes the computation and that we do not implement.
ModelConfig config_from_json(const JsonFields& config);

// Fills in end_tokens (config.json, generation_config.json and the end texts of
// tokenizer_config.json and special_tokens_map.json), bos_token, eos_token and chat_template.
void add_token_facts(const JsonFields& config, const FolderTexts& texts, ModelConfig& result);

}  // namespace bodega::model
