#include "cli/option_flags.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/errors.h"

namespace bodega::cli {
namespace {

template <class Options>
Options read(std::vector<std::string> arguments) {
  CLI::App app;
  OptionFlags<Options> flags;
  flags.declare(app);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  Options options;
  flags.apply(options);
  return options;
}

TEST(OptionFlags, SetEveryKindOfField) {
  const auto server =
      read<server::ServerOptions>({"--host", "::1", "--port", "0", "--strict", "--no-access-log",
                                   "--cors-origins", "a,b", "--model-aliases", "x=y"});
  EXPECT_EQ(server.host, "::1");
  EXPECT_EQ(server.port, 0);
  EXPECT_TRUE(server.strict);
  EXPECT_FALSE(server.access_log);
  EXPECT_EQ(server.cors_origins, (server::StringList{"a", "b"}));
  EXPECT_EQ(server.model_aliases, (server::StringMap{{"x", "y"}}));
}

TEST(OptionFlags, BooleansTakeAValueToo) {
  EXPECT_FALSE(read<server::ServerOptions>({"--access-log=false"}).access_log);
  EXPECT_TRUE(read<server::ServerOptions>({"--strict=true"}).strict);
}

TEST(OptionFlags, BadValuesAreRefusedByName) {
  EXPECT_THROW(read<server::ServerOptions>({"--port", "70000"}), Error);
  EXPECT_THROW(read<server::ModelOptions>({"--kv-mode", "lossy"}), Error);
  EXPECT_THROW(read<server::ModelOptions>({"--nope"}), CLI::ParseError);
}

// The contract: every flag has an environment twin.
template <class Options>
void expect_twins() {
  CLI::App app;
  OptionFlags<Options> flags;
  flags.declare(app);
  for (const auto& field : server::fields<Options>()) {
    const CLI::Option* option = app.get_option(server::flag_name(field.name));
    EXPECT_EQ(option->get_envname(), server::environment_name(field.name));
  }
}

TEST(OptionFlags, EveryFlagHasAnEnvironmentTwin) {
  expect_twins<server::ServerOptions>();
  expect_twins<server::LimitOptions>();
  expect_twins<server::ModelOptions>();
}

TEST(OptionFlags, TheEnvironmentIsReadAndTheFlagWins) {
  ::setenv("BODEGA_QUEUE_SIZE", "7", 1);
  ::setenv("BODEGA_CB_ENABLE_PREFIX_CACHE", "false", 1);
  EXPECT_EQ(read<server::ModelOptions>({}).queue_size, 7);
  EXPECT_FALSE(read<server::ModelOptions>({}).cb_enable_prefix_cache);
  EXPECT_EQ(read<server::ModelOptions>({"--queue-size", "8"}).queue_size, 8);
  ::unsetenv("BODEGA_QUEUE_SIZE");
  ::unsetenv("BODEGA_CB_ENABLE_PREFIX_CACHE");
}

}  // namespace
}  // namespace bodega::cli
