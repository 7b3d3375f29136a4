#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "base/errors.h"
#include "fixtures.h"
#include "model/config.h"

namespace bodega::model {
namespace {

namespace json = boost::json;

json::object expected_of(const std::string& fixture) {
  std::filesystem::path folder = fixture_path(fixture);
  if (!std::filesystem::is_directory(folder)) folder = folder.parent_path();
  return json::parse(read_file(folder / "expected.json")).as_object();
}

std::vector<float> floats(const json::value& list) {
  std::vector<float> result;
  for (const json::value& item : list.as_array()) {
    result.push_back(static_cast<float>(item.to_number<double>()));
  }
  return result;
}

// Values are dequantized in fp32 here and there; only the last bit may differ (an fma in MLX).
void expect_close(const float* got, const std::vector<float>& wanted, const std::string& what) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-6F + 3e-7F * std::abs(wanted[i])) << what << " value " << i;
  }
}

void check_matrix(const Checkpoint& checkpoint, const std::string& name,
                  const json::object& wanted) {
  const int rows = wanted.at("shape").at(0).to_number<int>();
  const int cols = wanted.at("shape").at(1).to_number<int>();
  const auto source = checkpoint.matrix(name, rows, cols);
  EXPECT_EQ(source->format().name(), std::string(wanted.at("format").as_string())) << name;
  std::vector<float> values(static_cast<std::size_t>(rows) * cols);
  source->read_values(0, rows, values.data());
  double sum = 0.0;
  for (const float value : values) sum += value;
  EXPECT_NEAR(sum, wanted.at("sum").to_number<double>(), 1e-3) << name;
  for (const auto& [row, list] : wanted.at("rows").as_object()) {
    const std::size_t number = std::stoul(std::string(row));
    expect_close(values.data() + number * cols, floats(list), name + " row " + std::string(row));
    std::vector<float> alone(cols);
    source->read_values(static_cast<int>(number), 1, alone.data());
    EXPECT_EQ(alone, std::vector<float>(values.begin() + number * cols,
                                        values.begin() + (number + 1) * cols))
        << name << ": a row read alone differs";
  }
}

class CheckpointGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(CheckpointGolden, EveryTensorReadsAsItsWriterSays) {
  const auto checkpoint = Checkpoint::open(fixture_path(GetParam()));
  const json::object expected = expected_of(GetParam());
  std::size_t named = 0;
  for (const auto& [key, value] : expected) {
    const std::string name(key);
    const json::object& wanted = value.as_object();
    ASSERT_TRUE(checkpoint->has(name)) << name;
    ++named;
    if (wanted.at("shape").as_array().size() == 2) {
      check_matrix(*checkpoint, name, wanted);
    } else {
      const int size = wanted.at("shape").at(0).to_number<int>();
      const auto values = floats(wanted.at("values"));
      expect_close(checkpoint->vector(name, size).data(), values, name);
    }
  }
  const std::size_t factors = checkpoint->has("rope_freqs.weight") ? 1 : 0;
  EXPECT_EQ(checkpoint->names().size(), named + factors);
  EXPECT_NO_THROW(checkpoint->check_all_used());
}

TEST_P(CheckpointGolden, CodesTimesScalesAreTheValues) {
  const auto checkpoint = Checkpoint::open(fixture_path(GetParam()));
  const ModelConfig& config = checkpoint->config();
  const auto source = checkpoint->matrix("model.layers.0.mlp.down_proj.weight", config.hidden_size,
                                         config.intermediate_size);
  const ops::WeightFormat format = source->format();
  const int cols = source->cols();
  if (!format.quantized()) {
    EXPECT_THROW(source->read_codes(0, 1, nullptr, nullptr, nullptr), Error);
    return;
  }
  const int groups = cols / format.group_size;
  std::vector<std::uint8_t> codes(3 * cols);
  std::vector<float> scales(3 * groups), biases(3 * groups), values(3 * cols);
  source->read_codes(2, 3, codes.data(), scales.data(), biases.data());
  source->read_values(2, 3, values.data());
  const float* table = ops::code_values(format.kind);
  for (int i = 0; i < 3 * cols; ++i) {
    const int group = i / format.group_size;
    ASSERT_LT(codes[i], 1 << format.bits);
    const float value = table == nullptr
                            ? static_cast<float>(codes[i]) * scales[group] + biases[group]
                            : table[codes[i]] * scales[group];
    EXPECT_EQ(values[i], value) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CheckpointGolden, ::testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return info.param; });

TEST(Checkpoint, LoadsEveryFixtureAsAPlanWould) {
  for (const std::string& name : fixture_names())
    EXPECT_EQ(load_error(fixture_path(name)), "") << name;
}

TEST(Checkpoint, ReadsTheMetadataOfGguf) {
  const auto checkpoint = Checkpoint::open(fixture_path("gguf_q4_1"));
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.context_length, 512);
  EXPECT_FALSE(config.tied_embeddings);
  // The declared end token and the well-known text of another.
  EXPECT_EQ(config.end_tokens, (std::vector<core::TokenId>{0, 2}));
  EXPECT_EQ(config.bos_token, "<|im_start|>");
  EXPECT_EQ(config.eos_token, "<|im_end|>");
  EXPECT_EQ(config.chat_template, "{{ messages[0]['content'] }}");
  const auto vocabulary = checkpoint->gguf_vocabulary();
  ASSERT_TRUE(vocabulary.has_value());
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->pre, "smollm");
  EXPECT_EQ(vocabulary->tokens.size(), 64U);
  EXPECT_EQ(vocabulary->types.size(), 64U);
  EXPECT_EQ(vocabulary->merges, (std::vector<std::string>{"! \"", "# $"}));
  EXPECT_EQ(vocabulary->bos, 1);
  EXPECT_EQ(vocabulary->unknown, -1);
}

TEST(Checkpoint, TakesRotaryFactorsFromGguf) {
  const auto checkpoint = Checkpoint::open(fixture_path("gguf_rope_factors"));
  const auto stretched = rotary_frequencies(checkpoint->config());
  ModelConfig plain = checkpoint->config();
  plain.rope_scaling = {};
  const auto base = rotary_frequencies(plain);
  const std::vector<float> factors = {1.0F, 1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 8.0F};
  ASSERT_EQ(stretched.size(), factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    EXPECT_FLOAT_EQ(stretched[i] * factors[i], base[i]) << i;
  }
}

TEST(Checkpoint, ContentHashTellsFilesApart) {
  const auto hash = [](const std::filesystem::path& path) {
    return Checkpoint::open(path)->content_hash();
  };
  EXPECT_EQ(hash(fixture_path("hf_f16")), hash(fixture_path("hf_f16")));
  EXPECT_NE(hash(fixture_path("gguf_q4_0")), hash(fixture_path("gguf_q4_1")));
  const TemporaryFolder folder;
  const auto path = folder.copy_fixture("hf_f16");
  EXPECT_EQ(hash(path), hash(fixture_path("hf_f16")));
  std::string bytes = read_file(path / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(path / "model.safetensors", bytes);
  EXPECT_NE(hash(path), hash(fixture_path("hf_f16")));
}

}  // namespace
}  // namespace bodega::model
