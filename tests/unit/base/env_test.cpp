#include "base/env.h"

#include <gtest/gtest.h>

#include "base/errors.h"
#include "scoped_env.h"

namespace bodega {
namespace {

constexpr const char* kName = "BODEGA_TEST_VARIABLE";

TEST(Env, UnsetAndEmptyAreAbsent) {
  const ScopedEnv unset(kName, nullptr);
  EXPECT_FALSE(env_string(kName).has_value());
  const ScopedEnv empty(kName, "");
  EXPECT_FALSE(env_string(kName).has_value());
  EXPECT_FALSE(env_int(kName, 0, 1).has_value());
  EXPECT_FALSE(env_flag(kName).has_value());
  EXPECT_FALSE(env_bytes(kName).has_value());
}

TEST(Env, NumbersHaveToBeWholeAndInRange) {
  {
    const ScopedEnv value(kName, "7");
    EXPECT_EQ(env_int(kName, 1, 7), 7);
    EXPECT_THROW(env_int(kName, 1, 6), Error);
  }
  for (const char* text : {"7x", " 7", "7.0", "seven", "99999999999999999999"}) {
    const ScopedEnv value(kName, text);
    EXPECT_THROW(env_int(kName, 1, 100), Error) << text;
  }
}

TEST(Env, FlagsTakeTheUsualWords) {
  for (const char* text : {"1", "true", "Yes", "ON"}) {
    const ScopedEnv value(kName, text);
    EXPECT_EQ(env_flag(kName), true) << text;
  }
  for (const char* text : {"0", "False", "no", "off"}) {
    const ScopedEnv value(kName, text);
    EXPECT_EQ(env_flag(kName), false) << text;
  }
  const ScopedEnv value(kName, "maybe");
  EXPECT_THROW(env_flag(kName), Error);
}

TEST(Env, ErrorsNameTheVariable) {
  const ScopedEnv value(kName, "lots");
  try {
    env_bytes(kName);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(kName), std::string::npos);
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  }
}

}  // namespace
}  // namespace bodega
