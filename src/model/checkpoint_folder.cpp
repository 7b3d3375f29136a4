#include <algorithm>
#include <utility>

#include "model/checkpoint_floats.h"
#include "model/checkpoint_formats.h"
#include "model/checkpoint_hash.h"
#include "model/checkpoint_sources.h"
#include "model/checkpoint_tensors.h"
#include "model/config_folder.h"
#include "model/config_quantization.h"
#include "model/mapped_file.h"
#include "model/safetensors.h"

namespace bodega::model {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxText = std::uint64_t{512} << 20;

std::optional<std::string> read_text(const fs::path& folder, const char* name) {
  const auto file = open_in_folder(folder, name);
  if (file == nullptr) return std::nullopt;
  if (file->bytes().size() > kMaxText) fail_file(name, "is larger than 512 MiB.");
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

FolderTexts read_texts(const fs::path& folder) {
  auto config = read_text(folder, "config.json");
  if (!config) fail_file(printable(folder.string()), "the folder has no config.json.");
  return {.config = *std::move(config),
          .generation_config = read_text(folder, "generation_config.json"),
          .tokenizer_config = read_text(folder, "tokenizer_config.json"),
          .special_tokens_map = read_text(folder, "special_tokens_map.json"),
          .tokenizer = read_text(folder, "tokenizer.json"),
          .chat_template = read_text(folder, "chat_template.jinja"),
          .chat_template_json = read_text(folder, "chat_template.json")};
}

class FolderCheckpoint : public Checkpoint {
 public:
  explicit FolderCheckpoint(const fs::path& folder) : texts_(read_texts(folder)), tensors_(folder) {
    const boost::json::value document = parse_json(texts_.config, "config.json");
    const JsonFields fields(document, "config.json");
    config_ = config_from_json(fields);
    quantization_ = Quantization::read(fields);
    add_token_facts(fields, texts_, config_);
  }

  const ModelConfig& config() const override { return config_; }
  std::vector<std::string> names() const override { return tensors_.names(); }
  bool has(const std::string& name) const override { return tensors_.find(name) != nullptr; }

  ops::WeightSourcePtr matrix(const std::string& name, int rows, int cols) const override {
    constexpr std::string_view kWeight = ".weight";
    const std::string module =
        name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
    const auto declared = quantization_.format_of(module);
    used_.add(name);
    if (has(module + ".scales")) return tensors_.quantized(module, declared, rows, cols);
    return tensors_.dense(name, rows, cols);
  }

  std::vector<float> vector(const std::string& name, int size) const override {
    used_.add(name);
    return tensors_.vector(name, size);
  }

  void check_all_used() const override { fail_on_stray(*this, used_, "the folder"); }
  std::optional<std::string> tokenizer_json() const override { return texts_.tokenizer; }
  std::optional<core::GgufVocabulary> gguf_vocabulary() const override { return std::nullopt; }
  std::uint64_t bytes() const override { return tensors_.bytes(); }

  std::string content_hash() const override {
    ContentHash hash;
    hash.add_text(texts_.config);
    for (const auto* text :
         {&texts_.generation_config, &texts_.tokenizer_config, &texts_.special_tokens_map,
          &texts_.tokenizer, &texts_.chat_template, &texts_.chat_template_json}) {
      hash.add_text(text->value_or(""));
    }
    tensors_.add_to(hash);
    return hash.finish();
  }

 private:
  FolderTexts texts_;
  FolderTensors tensors_;
  ModelConfig config_;
  Quantization quantization_;
  mutable UsedNames used_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_folder(const fs::path& path) {
  const std::vector<std::string> names = list_folder(path);
  const auto is_gguf = [](const std::string& name) { return name.ends_with(".gguf"); };
  if (std::ranges::count(names, "config.json") == 0 && std::ranges::count_if(names, is_gguf) == 1) {
    return open_gguf(path / *std::ranges::find_if(names, is_gguf));
  }
  return std::make_unique<FolderCheckpoint>(path);
}

}  // namespace bodega::model
