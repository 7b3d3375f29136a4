#include "model/config_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.h"
#include "model/config_quantization.h"

namespace bodega::model {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A config.json with the fields of `changes` over those of a small model; null removes.
std::string config_text(const std::string& architecture, const std::string& changes = "{}") {
  json::object config = json::parse(R"({"hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
      "vocab_size": 128, "max_position_embeddings": 256, "rms_norm_eps": 1e-6,
      "rope_theta": 5e5})")
                            .as_object();
  config["model_type"] = architecture;
  const json::value changed = json::parse(changes);
  for (const auto& [key, value] : changed.as_object()) config[key] = value;
  return json::serialize(config);
}

ModelConfig parse(const std::string& architecture, const std::string& changes = "{}") {
  const json::value document = parse_json(config_text(architecture, changes), "config.json");
  return config_from_json(JsonFields(document, "config.json"));
}

std::string error_of(const std::string& architecture, const std::string& changes) {
  try {
    parse(architecture, changes);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile);
    return error.what();
  }
}

TEST(ConfigFolder, ReadsTheNumbers) {
  const ModelConfig config =
      parse("llama", R"({"attention_bias": true, "tie_word_embeddings": true})");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-6F);
  EXPECT_FLOAT_EQ(config.rope_theta, 5e5F);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.output_bias);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_EQ(config.sliding_window, 0);
}

TEST(ConfigFolder, KnowsWhatEachArchitectureImplies) {
  EXPECT_TRUE(parse("qwen2").attention_bias);
  EXPECT_FALSE(parse("qwen2").output_bias);
  EXPECT_TRUE(parse("qwen3").qk_norm);
  EXPECT_EQ(parse("qwen3").head_dim, 128);
  EXPECT_EQ(parse("mistral").sliding_window, 4096);
  EXPECT_EQ(parse("mistral", R"({"sliding_window": null})").sliding_window, 0);
  EXPECT_EQ(parse("mistral", R"({"sliding_window": 32})").window_layers.size(), 0U);
}

TEST(ConfigFolder, FollowsTheWindowRulesOfQwen) {
  EXPECT_EQ(parse("qwen2", R"({"sliding_window": 32, "max_window_layers": 2})").sliding_window, 0);
  const ModelConfig some = parse(
      "qwen2", R"({"use_sliding_window": true, "sliding_window": 32, "max_window_layers": 2})");
  EXPECT_EQ(some.sliding_window, 32);
  EXPECT_THAT(some.window_layers, ElementsAre(2, 3));
  const ModelConfig none = parse(
      "qwen2", R"({"use_sliding_window": true, "sliding_window": 32, "max_window_layers": 4})");
  EXPECT_EQ(none.sliding_window, 0);
  const ModelConfig listed = parse("qwen3", R"({"use_sliding_window": true, "sliding_window": 32,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                      "full_attention"]})");
  EXPECT_THAT(listed.window_layers, ElementsAre(0, 2));
}

TEST(ConfigFolder, RefusesByName) {
  EXPECT_THAT(error_of("gemma3", "{}"), HasSubstr("gemma3"));
  EXPECT_THAT(error_of("llama", R"({"hidden_act": "gelu"})"), HasSubstr("hidden_act"));
  EXPECT_THAT(error_of("llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 4}})"),
              HasSubstr("yarn"));
  EXPECT_THAT(error_of("llama", R"({"partial_rotary_factor": 0.5})"), HasSubstr("partial_rotary"));
  EXPECT_THAT(error_of("llama", R"({"num_local_experts": 8})"), HasSubstr("num_local_experts"));
  EXPECT_THAT(error_of("llama", R"({"vision_config": {}})"), HasSubstr("vision_config"));
  EXPECT_THAT(error_of("llama", R"({"sliding_window": 64})"), HasSubstr("sliding_window"));
  EXPECT_THAT(error_of("llama", R"({"architectures": ["LlamaForSequenceClassification"]})"),
              HasSubstr("architectures"));
  EXPECT_THAT(error_of("qwen3", R"({"layer_types": ["full_attention"]})"),
              HasSubstr("layer_types"));
  EXPECT_THAT(error_of("qwen2", R"({"attention_bias": true})"), HasSubstr("attention_bias"));
}

TEST(ConfigFolder, RefusesNumbersThatMakeNoSense) {
  EXPECT_THAT(error_of("llama", R"({"hidden_size": 0})"), HasSubstr("hidden_size"));
  EXPECT_THAT(error_of("llama", R"({"hidden_size": "64"})"), HasSubstr("hidden_size"));
  EXPECT_THAT(error_of("llama", R"({"hidden_size": true})"), HasSubstr("hidden_size"));
  EXPECT_THAT(error_of("llama", R"({"vocab_size": null})"), HasSubstr("vocab_size"));
  EXPECT_THAT(error_of("llama", R"({"vocab_size": 1e30})"), HasSubstr("vocab_size"));
  EXPECT_THAT(error_of("llama", R"({"num_key_value_heads": 3})"), HasSubstr("heads"));
  EXPECT_THAT(error_of("llama", R"({"head_dim": 15})"), HasSubstr("head_dim"));
  EXPECT_THAT(error_of("llama", R"({"rms_norm_eps": 0})"), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(error_of("llama", R"({"hidden_size": 66})"), HasSubstr("hidden_size"));
  EXPECT_EQ(parse("llama", R"({"hidden_size": 64.0})").hidden_size, 64);
}

// Numbers of mlx-lm 0.32.2 (rope_utils.Llama3RoPE) for these settings.
TEST(ConfigFolder, StretchesRotaryAsLlama3Does) {
  const ModelConfig config = parse("llama", R"({"rope_theta": 500000.0, "rope_scaling":
      {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
       "original_max_position_embeddings": 64}})");
  const auto got = rotary_frequencies(config);
  const std::vector<float> wanted = {
      1.0F,           0.0794030092F,   0.00470075387F, 0.000911583092F, 0.000176776695F,
      3.4281022e-05F, 6.64786987e-06F, 1.28917317e-06F};
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-6F * wanted[i]) << i;
  }
}

TEST(ConfigFolder, ReadsRotaryOfNewerFiles) {
  const ModelConfig config = parse("llama", R"({"rope_theta": null, "rope_parameters":
      {"rope_type": "linear", "rope_theta": 20000.0, "factor": 2.0}})");
  EXPECT_FLOAT_EQ(config.rope_theta, 20000.0F);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_FLOAT_EQ(rotary_frequencies(config)[0], 0.5F);
}

ModelConfig with_tokens(const std::string& changes, FolderTexts texts) {
  texts.config = config_text("llama", changes);
  const json::value document = parse_json(texts.config, "config.json");
  const JsonFields fields(document, "config.json");
  ModelConfig config = config_from_json(fields);
  add_token_facts(fields, texts, config);
  return config;
}

TEST(ConfigFolder, EndTokensAreTheUnionOfAllThatIsDeclared) {
  FolderTexts texts;
  texts.generation_config = R"({"eos_token_id": [9, 7]})";
  texts.tokenizer_config = R"({"eos_token": {"content": "<end>", "lstrip": false},
      "bos_token": "<s>", "added_tokens_decoder": {"11": {"content": "<end>"}}})";
  texts.special_tokens_map = R"({"eos_token": "</s>"})";
  texts.tokenizer = R"({"added_tokens": [], "model": {"vocab": {"a": 1, "</s>": 3}}})";
  const ModelConfig config = with_tokens(R"({"eos_token_id": 5})", texts);
  EXPECT_THAT(config.end_tokens, ElementsAre(3, 5, 7, 9, 11));
  EXPECT_EQ(config.bos_token, "<s>");
  EXPECT_EQ(config.eos_token, "<end>");
}

TEST(ConfigFolder, FindsEndTextsInEveryKindOfTokenizer) {
  for (const char* tokenizer :
       {R"({"added_tokens": [{"id": 8, "content": "<end>"}]})",
        R"({"model": {"vocab": {"<end>": 8}}})",
        R"({"model": {"vocab": [["a",0],["b",0],["c",0],["d",0],["e",0],["f",0],["g",0],["h",0],
            ["<end>",0]]}})"}) {
    FolderTexts texts;
    texts.tokenizer_config = R"({"eos_token": "<end>"})";
    texts.tokenizer = tokenizer;
    EXPECT_THAT(with_tokens("{}", texts).end_tokens, ElementsAre(8)) << tokenizer;
  }
}

TEST(ConfigFolder, AnEndTokenThatDoesNotExistIsAnError) {
  FolderTexts texts;
  texts.tokenizer_config = R"({"eos_token": "<end>"})";
  EXPECT_THROW(with_tokens("{}", texts), Error);
  EXPECT_THROW(with_tokens(R"({"eos_token_id": 128})", {}), Error);
  EXPECT_THROW(with_tokens(R"({"eos_token_id": [-1]})", {}), Error);
  EXPECT_THROW(with_tokens(R"({"eos_token_id": "2"})", {}), Error);
  EXPECT_TRUE(with_tokens(R"({"eos_token_id": null})", {}).end_tokens.empty());
}

TEST(ConfigFolder, ChoosesTheChatTemplate) {
  FolderTexts texts;
  texts.tokenizer_config = R"({"chat_template": "one"})";
  EXPECT_EQ(with_tokens("{}", texts).chat_template, "one");
  texts.tokenizer_config = R"({"chat_template": [{"name": "tool_use", "template": "two"},
      {"name": "default", "template": "three"}]})";
  EXPECT_EQ(with_tokens("{}", texts).chat_template, "three");
  texts.chat_template_json = R"({"chat_template": "four"})";
  EXPECT_EQ(with_tokens("{}", texts).chat_template, "four");
  texts.chat_template = "five";
  EXPECT_EQ(with_tokens("{}", texts).chat_template, "five");
}

Quantization quantization(const std::string& text) {
  const json::value document = parse_json(R"({"quantization": )" + text + "}", "config.json");
  return Quantization::read(JsonFields(document, "config.json"));
}

TEST(ConfigQuantization, MatchesExceptionsBeforeAndAfterRenaming) {
  const Quantization all = quantization(R"({"group_size": 64, "bits": 4,
      "model.embed_tokens": {"group_size": 32, "bits": 8},
      "language_model.model.layers.1.mlp.down_proj": {"bits": 6},
      "model.language_model.layers.2.mlp.down_proj": {"bits": 3, "group_size": 128},
      "lm_head": false, "model.layers.0.mlp.up_proj": true})");
  EXPECT_EQ(all.format_of("model.layers.0.mlp.up_proj")->name(), "affine 4-bit g64");
  EXPECT_EQ(all.format_of("model.embed_tokens")->name(), "affine 8-bit g32");
  EXPECT_EQ(all.format_of("model.layers.1.mlp.down_proj")->name(), "affine 6-bit g64");
  EXPECT_EQ(all.format_of("model.layers.2.mlp.down_proj")->name(), "affine 3-bit g128");
  EXPECT_FALSE(all.format_of("lm_head").has_value());
}

TEST(ConfigQuantization, RefusesByName) {
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {R"({"quant_method": "gptq", "bits": 4})", "gptq"},
           {R"({"bits": 7, "group_size": 64})", "bits"},
           {R"({"bits": 4, "group_size": 16})", "group_size"},
           {R"({"mode": "q5_k"})", "q5_k"},
           {R"({"mode": "mxfp4", "bits": 8, "group_size": 32})", "mxfp4"},
           {R"({"bits": 4, "group_size": 64, "lm_head": 8})", "lm_head"},
           {R"({"bits": 4, "bits": 8})", "twice"}}) {
    try {
      quantization(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(ConfigJson, RefusesBrokenDocuments) {
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  for (const std::string& text : std::vector<std::string>{"", "{", "[1,]", "{\"a\": \"\xFF\"}",
                                                          deep, "{\"a\": 1} x", "NaN"}) {
    EXPECT_THROW(parse_json(text, "config.json"), Error) << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace bodega::model
