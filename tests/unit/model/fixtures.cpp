#include "fixtures.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/errors.h"

namespace bodega::model {
namespace fs = std::filesystem;
namespace {

class Reader {
 public:
  explicit Reader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  double sum() const { return sum_; }

  void matrix(const std::string& name, int rows, int cols) {
    const auto source = checkpoint_.matrix(name, rows, cols);
    std::vector<float> values(static_cast<std::size_t>(rows) * cols);
    source->read_values(0, rows, values.data());
    for (const float value : values) sum_ += value;
  }
  void vector(const std::string& name, int size) {
    for (const float value : checkpoint_.vector(name, size)) sum_ += value;
  }
  void layer(const ModelConfig& config, const std::string& prefix) {
    const int queries = config.heads * config.head_dim;
    const int keys = config.kv_heads * config.head_dim;
    matrix(prefix + "self_attn.q_proj.weight", queries, config.hidden_size);
    matrix(prefix + "self_attn.k_proj.weight", keys, config.hidden_size);
    matrix(prefix + "self_attn.v_proj.weight", keys, config.hidden_size);
    matrix(prefix + "self_attn.o_proj.weight", config.hidden_size, queries);
    matrix(prefix + "mlp.gate_proj.weight", config.intermediate_size, config.hidden_size);
    matrix(prefix + "mlp.up_proj.weight", config.intermediate_size, config.hidden_size);
    matrix(prefix + "mlp.down_proj.weight", config.hidden_size, config.intermediate_size);
    vector(prefix + "input_layernorm.weight", config.hidden_size);
    vector(prefix + "post_attention_layernorm.weight", config.hidden_size);
    if (config.attention_bias) {
      vector(prefix + "self_attn.q_proj.bias", queries);
      vector(prefix + "self_attn.k_proj.bias", keys);
      vector(prefix + "self_attn.v_proj.bias", keys);
    }
    if (config.qk_norm) {
      vector(prefix + "self_attn.q_norm.weight", config.head_dim);
      vector(prefix + "self_attn.k_norm.weight", config.head_dim);
    }
  }

 private:
  const Checkpoint& checkpoint_;
  double sum_ = 0.0;
};

}  // namespace

fs::path fixture_path(const std::string& name) {
  const fs::path folder = fs::path(BODEGA_SOURCE_DIR) / "tests/golden/model" / name;
  return fs::exists(folder / "model.gguf") ? folder / "model.gguf" : folder;
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(BODEGA_SOURCE_DIR) / "tests/golden/model")) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "bodega_model_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TemporaryFolder::copy_fixture(const std::string& name) const {
  const fs::path from = fixture_path(name);
  const fs::path to = path_ / name;
  fs::create_directories(to);
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  fs::copy(folder, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return fs::is_directory(from) ? to : to / "model.gguf";
}

double read_all(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  Reader reader(checkpoint);
  reader.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
  reader.vector("model.norm.weight", config.hidden_size);
  if (!config.tied_embeddings) {
    reader.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
  }
  for (int layer = 0; layer < config.layers; ++layer) {
    reader.layer(config, "model.layers." + std::to_string(layer) + ".");
  }
  checkpoint.check_all_used();
  return reader.sum();
}

std::string load_error(const fs::path& path) {
  try {
    read_all(*Checkpoint::open(path));
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadModelFile) throw;
    return error.what();
  }
}

}  // namespace bodega::model
