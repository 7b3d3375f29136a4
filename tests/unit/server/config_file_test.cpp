#include "server/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"

namespace bodega::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ServeOptions read(const std::string& text) {
  ServeOptions options;
  load_config_text(text, "config.yaml", options);
  return options;
}

TEST(ConfigFile, ReadsEveryKindOfField) {
  const ServeOptions options = read(R"(
server:
  host: 0.0.0.0
  port: 8080
  api_keys: ["a,b", c]
  model_aliases: {gpt-4: one, "claude-*": two}
  access_log: no
  limits: {body_bytes: 1MiB, connections: 10}
models:
  - model_path: some/model
    context_length: 4096
    cb_enable_prefix_cache: false
  - {model_id: two, memory_budget: 2GiB}
)");
  EXPECT_EQ(options.server.host, "0.0.0.0");
  EXPECT_EQ(options.server.port, 8080);
  EXPECT_EQ(options.server.api_keys, (StringList{"a,b", "c"}));
  EXPECT_EQ(options.server.model_aliases, (StringMap{{"gpt-4", "one"}, {"claude-*", "two"}}));
  EXPECT_FALSE(options.server.access_log);
  EXPECT_EQ(options.limits.body_bytes, 1U << 20);
  EXPECT_EQ(options.limits.connections, 10);
  ASSERT_EQ(options.models.size(), 2U);
  EXPECT_EQ(options.models[0].context_length, 4096);
  EXPECT_FALSE(options.models[0].cb_enable_prefix_cache);
  EXPECT_EQ(options.models[1].model_id, "two");
  EXPECT_EQ(options.models[1].memory_budget, 2ULL << 30);
}

TEST(ConfigFile, EmptyAndAbsentMeanTheDefaults) {
  EXPECT_EQ(read("").server.port, ServerOptions{}.port);
  EXPECT_EQ(read("server:\n  port:\n").server.port, ServerOptions{}.port);
}

struct Refusal {
  const char* name;
  const char* text;
  int line;
  const char* part;
};

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, NameFileAndLine) {
  try {
    read(GetParam().text);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_THAT(error.what(), StartsWith("config.yaml:" + std::to_string(GetParam().line) + ": "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Refusals,
    testing::Values(
        Refusal{"UnknownSection", "server:\n  port: 1\nmodel:\n", 3, "\"model\""},
        Refusal{"UnknownServerKey", "server:\n  prt: 1\n", 2, "\"prt\""},
        Refusal{"UnknownLimit", "server:\n  limits:\n    header: 1\n", 3, "\"header\""},
        Refusal{"UnknownModelKey", "models:\n  - model_path: a\n    ctx: 1\n", 3, "\"ctx\""},
        Refusal{"TestOnlyKey", "models:\n  - scripted_model: a\n", 2, "\"scripted_model\""},
        Refusal{"RepeatedKey", "server:\n  port: 1\n  port: 2\n", 3, "twice"},
        Refusal{"BadNumber", "server:\n  port: ninety\n", 2, "port must be a whole number"},
        Refusal{"OutOfRange", "server:\n  port: 99999\n", 2, "0 to 65535"},
        Refusal{"BadChoice", "models:\n\n  - kv_mode: compact\n", 3, "one of: exact"},
        Refusal{"ListForScalar", "server:\n  host: [a]\n", 2, "one value"},
        Refusal{"ScalarForList", "server:\n  api_keys: a\n", 2, "list"},
        Refusal{"ModelsNoList", "models:\n  model_path: a\n", 2, "list"},
        Refusal{"NotAMapping", "- a\n", 1, "mapping"},
        Refusal{"BrokenYaml", "server:\n  host: [a\n", 3, ""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ConfigFile, AFileThatIsNotThereIsAnError) {
  ServeOptions options;
  EXPECT_THROW(load_config_file("/no/such/config.yaml", options), Error);
}

}  // namespace
}  // namespace bodega::server
