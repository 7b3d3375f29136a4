#include <cstddef>
#include <cstdint>
#include <string>

#include "base/errors.h"
#include "model/config_folder.h"
#include "model/config_quantization.h"

// Any text as config.json and as each file beside it is refused with Error or gives a configuration
// that passed check_config.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bodega;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto document = model::parse_json(text, "config.json");
    const model::JsonFields fields(document, "config.json");
    model::Quantization::read(fields);
  } catch (const Error&) {
  }
  try {
    const model::FolderTexts texts{.config = text,
                                   .generation_config = text,
                                   .tokenizer_config = text,
                                   .special_tokens_map = text,
                                   .tokenizer = text,
                                   .chat_template = std::nullopt,
                                   .chat_template_json = text};
    const auto document = model::parse_json(text, "config.json");
    const model::JsonFields fields(document, "config.json");
    model::ModelConfig config = model::config_from_json(fields);
    model::add_token_facts(fields, texts, config);
    if (model::rotary_frequencies(config).size() * 2 != static_cast<std::size_t>(config.head_dim)) {
      __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
