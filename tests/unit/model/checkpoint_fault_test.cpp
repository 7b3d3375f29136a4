#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <fstream>
#include <functional>

#include "base/errors.h"
#include "base/memory.h"
#include "fixtures.h"

// Whole checkpoints with one thing wrong: each must end in an error that names file and tensor.
namespace bodega::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kDown = "model.layers.0.mlp.down_proj";

void edit_json(const fs::path& path, const std::function<void(json::object&)>& change) {
  json::value document = json::parse(read_file(path));
  change(document.as_object());
  write_file(path, json::serialize(document));
}

// Renames a tensor in a safetensors file; both names have the same length.
void rename_tensor(const fs::path& path, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  std::string bytes = read_file(path);
  const std::size_t at = bytes.find("\"" + from + "\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 1, from.size(), to);
  write_file(path, bytes);
}

TEST(CheckpointFault, ALastShardShortByOneByteIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_sharded");
  const fs::path last = path / "model-00003-of-00003.safetensors";
  fs::resize_file(last, fs::file_size(last) - 1);
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model-00003-of-00003.safetensors"),
                                      HasSubstr("tensor '"), HasSubstr(": 1 of its")));
  fs::resize_file(last, 10);
  EXPECT_THAT(load_error(path), HasSubstr("model-00003-of-00003.safetensors"));
  fs::remove(last);
  EXPECT_THAT(load_error(path), HasSubstr("model-00003-of-00003.safetensors: is missing"));
}

TEST(CheckpointFault, ACutGgufIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("gguf_q8_0");
  // The very last byte may be padding: cut until data is missing.
  const auto size = fs::file_size(path);
  fs::resize_file(path, size - 33);
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model.gguf"), HasSubstr("bytes are missing")));
  fs::resize_file(path, size / 2);
  EXPECT_THAT(load_error(path), HasSubstr("model.gguf"));
  fs::resize_file(path, 0);
  EXPECT_THAT(load_error(path), HasSubstr("is empty"));
}

TEST(CheckpointFault, AbsurdHeaderLengthIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  std::string bytes = read_file(path / "model.safetensors");
  bytes.replace(0, 8, std::string(8, '\xFF'));
  write_file(path / "model.safetensors", bytes);
  EXPECT_THAT(load_error(path), HasSubstr("model.safetensors: says that its header has"));
}

TEST(CheckpointFault, MissingAndStrayTensorsAreNamed) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  rename_tensor(path / "model.safetensors", "model.norm.weight", "model.morn.weight");
  EXPECT_THAT(load_error(path), HasSubstr("tensor 'model.norm.weight' is missing"));
  // A second layer's worth of tensors that the configuration does not ask for.
  const fs::path deep = folder.copy_fixture("mlx_mixed");
  edit_json(deep / "config.json", [](json::object& config) { config["num_hidden_layers"] = 1; });
  EXPECT_THAT(load_error(deep), AllOf(HasSubstr("tensor 'model.layers.1."), HasSubstr("ignored")));
  edit_json(deep / "config.json", [](json::object& config) { config["num_hidden_layers"] = 3; });
  EXPECT_THAT(load_error(deep), AllOf(HasSubstr("tensor 'model.layers.2."), HasSubstr("missing")));
}

TEST(CheckpointFault, WrongShapesAreNamed) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  edit_json(path / "config.json", [](json::object& config) { config["vocab_size"] = 65; });
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model.embed_tokens.weight"), HasSubstr("[64, 64]"),
                                      HasSubstr("[65, 64]")));
  const fs::path packed = folder.copy_fixture("mlx_mxfp4");
  edit_json(packed / "config.json",
            [](json::object& config) { config["intermediate_size"] = 128; });
  EXPECT_THAT(load_error(packed), HasSubstr("model.layers.0.mlp.gate_proj.weight"));
}

TEST(CheckpointFault, ConfiguredWidthsMustMatchTheShapes) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("mlx_mixed");
  const auto with_exceptions = [&](const std::function<void(json::object&)>& change) {
    edit_json(path / "config.json",
              [&](json::object& config) { change(config["quantization"].as_object()); });
    return load_error(path);
  };
  // Exceptions written before renaming still find their tensors.
  EXPECT_EQ(with_exceptions([](json::object& all) {
              json::value exception = all[kDown];
              all.erase(kDown);
              all[std::string("language_model.") + kDown] = exception;
            }),
            "");
  EXPECT_THAT(
      with_exceptions([](json::object& all) { all.erase(std::string("language_model.") + kDown); }),
      AllOf(HasSubstr(kDown), HasSubstr("affine 6-bit g64 by its shape"),
            HasSubstr("config.json says affine 4-bit g64")));
  EXPECT_THAT(with_exceptions([](json::object& all) { all[kDown] = false; }),
              AllOf(HasSubstr(kDown), HasSubstr("not quantized")));
}

TEST(CheckpointFault, QuantizedWeightsNeedTheirScalesAndBiases) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("mlx_bf16_scales");
  const std::string name = kDown;
  rename_tensor(path / "model.safetensors", name + ".biases", name + ".piases");
  EXPECT_THAT(load_error(path), HasSubstr(name));
  rename_tensor(path / "model.safetensors", name + ".scales", name + ".skales");
  EXPECT_THAT(load_error(path), AllOf(HasSubstr(name), HasSubstr("U32")));
}

TEST(CheckpointFault, TheIndexMustTellTheTruth) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_sharded");
  const fs::path index = path / "model.safetensors.index.json";
  const std::string good = read_file(index);
  edit_json(index,
            [](json::object& all) { all["weight_map"].as_object().erase("model.norm.weight"); });
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model.norm.weight"), HasSubstr("not listed")));
  write_file(index, good);
  edit_json(index, [](json::object& all) {
    all["weight_map"].as_object()["model.extra.weight"] = "model-00001-of-00003.safetensors";
  });
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model.extra.weight"), HasSubstr("lists it")));
  write_file(index, good);
  edit_json(index, [](json::object& all) {
    all["weight_map"].as_object()["model.norm.weight"] = "../hf_f16/model.safetensors";
  });
  EXPECT_THAT(load_error(path), AllOf(HasSubstr("model.norm.weight"), HasSubstr("this folder")));
}

TEST(CheckpointFault, TheSameTensorInTwoShardsIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  fs::copy_file(path / "model.safetensors", path / "model-copy.safetensors");
  EXPECT_THAT(load_error(path), HasSubstr("appears twice"));
}

TEST(CheckpointFault, LinksMayNotLeadOutOfTheModel) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  fs::rename(path / "model.safetensors", folder.path() / "elsewhere");
  fs::create_symlink(folder.path() / "elsewhere", path / "model.safetensors");
  EXPECT_THAT(load_error(path), HasSubstr("leads out of the model's folder"));
  fs::rename(folder.path() / "elsewhere", path / "model.safetensors");
  fs::create_symlink("/etc/hostname", path / "chat_template.jinja");
  EXPECT_THAT(load_error(path), HasSubstr("chat_template.jinja: is a link that leads out"));
}

TEST(CheckpointFault, AFolderWithOneGgufIsThatModel) {
  const TemporaryFolder folder;
  const fs::path file = folder.copy_fixture("gguf_q4_0");
  EXPECT_EQ(load_error(file.parent_path()), "");
  fs::copy_file(file, file.parent_path() / "second.gguf");
  EXPECT_THAT(load_error(file.parent_path()), HasSubstr("no config.json"));
  EXPECT_THAT(load_error(fixture_path("hf_f16") / "model.safetensors"),
              HasSubstr("name the folder"));
}

TEST(CheckpointFault, LinksOfTheHuggingFaceCacheAreFollowed) {
  const TemporaryFolder folder;
  const fs::path fixture = folder.copy_fixture("hf_f16");
  const fs::path repository = folder.path() / "models--a--b";
  const fs::path snapshot = repository / "snapshots" / "0123";
  fs::create_directories(repository / "blobs");
  fs::create_directories(snapshot);
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::rename(fixture / name, repository / "blobs" / name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  EXPECT_EQ(load_error(snapshot), "");
}

TEST(CheckpointFault, OnlyRegularFilesAreOpened) {
  const TemporaryFolder folder;
  EXPECT_THAT(load_error(folder.path() / "nothing"), HasSubstr("no such file"));
  EXPECT_THAT(load_error(folder.path()), HasSubstr("config.json"));
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.gguf").c_str(), 0600), 0);
  EXPECT_THAT(load_error(folder.path() / "pipe.gguf"), HasSubstr("not a regular file"));
  const fs::path path = folder.copy_fixture("hf_f16");
  fs::remove(path / "model.safetensors");
  EXPECT_THAT(load_error(path), HasSubstr("no model*.safetensors"));
}

TEST(CheckpointFault, AFileThatChangesUnderneathIsNoticed) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("gguf_q8_0");
  const auto checkpoint = Checkpoint::open(path);
  std::ofstream(path, std::ios::app) << "more";
  try {
    read_all(*checkpoint);
    FAIL() << "the change went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("was changed while"));
  }
}

TEST(CheckpointFault, LeftoversOfExportersAreAllowed) {
  const TemporaryFolder folder;
  const fs::path path = folder.copy_fixture("hf_f16");
  const fs::path file = path / "model.safetensors";
  std::string bytes = read_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  json::value header = json::parse(bytes.substr(8, length));
  const std::size_t data = bytes.size() - 8 - length;
  header.as_object()["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {data, data + 4}}};
  const std::string text = json::serialize(header);
  const std::uint64_t new_length = text.size();
  bytes = std::string(reinterpret_cast<const char*>(&new_length), 8) + text +
          bytes.substr(8 + length) + "1234";
  write_file(file, bytes);
  EXPECT_EQ(load_error(path), "");
}

// Flips land in names, metadata, sizes and offsets: an error or the same model, never a crash.
TEST(CheckpointFault, SurvivesBitFlipsOfWholeFiles) {
  for (const char* name : {"gguf_q4_1", "mlx_nvfp4"}) {
    const TemporaryFolder folder;
    const fs::path path = folder.copy_fixture(name);
    const fs::path file = fs::is_directory(path) ? path / "model.safetensors" : path;
    std::string bytes = read_file(file);
    int refused = 0;
    for (std::size_t at = 0; at < 2400; at += 3) {
      const char good = bytes[at];
      bytes[at] = static_cast<char>(good ^ (1 << (at % 8)));
      write_file(file, bytes);
      refused += load_error(path).empty() ? 0 : 1;
      bytes[at] = good;
    }
    EXPECT_GT(refused, 200) << name;
  }
}

}  // namespace
}  // namespace bodega::model
