#include "base/log.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/errors.h"
#include "scoped_env.h"

namespace bodega {
namespace {

TEST(Log, TextLinesShowFieldsAfterTheMessage) {
  EXPECT_EQ(format_log_text("loaded", {{"model", "smol"}, {"layers", 30}, {"tied", true}}),
            "loaded model=smol layers=30 tied=true");
}

TEST(Log, TextFieldsCannotForgeLinesOrFields) {
  EXPECT_EQ(format_log_text("bad", {{"path", "a b\nerror x=1"}}), "bad path=\"a b\\nerror x=1\"");
  EXPECT_EQ(format_log_text("bad", {{"path", ""}}), "bad path=\"\"");
}

TEST(Log, JsonLinesEscapeAndKeepTypes) {
  EXPECT_EQ(format_log_json(LogLevel::kWarn, "front", "say \"hi\"\x01",
                            {{"n", 3}, {"f", 0.5}, {"ok", false}, {"s", "a\\b"}}),
            "{\"level\":\"warn\",\"component\":\"front\",\"message\":\"say \\\"hi\\\"\\u0001\","
            "\"n\":3,\"f\":0.5,\"ok\":false,\"s\":\"a\\\\b\"}");
}

TEST(Log, JsonLinesStayValidWithHostileBytesAndNumbers) {
  const std::string line = format_log_json(LogLevel::kInfo, "w", "\xFF",
                                           {{"inf", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(line,
            "{\"level\":\"info\",\"component\":\"w\",\"message\":\"\xEF\xBF\xBD\",\"inf\":null}");
}

TEST(Log, LevelComesFromTheEnvironment) {
  {
    const ScopedEnv level("BODEGA_LOG", "error");
    init_logging("test");
    EXPECT_FALSE(log_enabled(LogLevel::kWarn));
    EXPECT_TRUE(log_enabled(LogLevel::kError));
  }
  {
    const ScopedEnv level("BODEGA_LOG", nullptr);
    init_logging("test");
    EXPECT_TRUE(log_enabled(LogLevel::kInfo));
    EXPECT_FALSE(log_enabled(LogLevel::kDebug));
  }
  const ScopedEnv level("BODEGA_LOG", "loud");
  EXPECT_THROW(init_logging("test"), Error);
}

// Standard error is a pipe here, so lines are JSON objects, one each.
TEST(Log, WritesOneJsonObjectALineWhereNoTerminalIs) {
  const ScopedEnv level("BODEGA_LOG", "info");
  testing::internal::CaptureStderr();
  init_logging("front");
  log_debug("not shown");
  log_info("listening on {}", {{"port", 44468}});
  const std::string out = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.find("{\"time\":\"20"), 0U) << out;
  EXPECT_NE(out.find("\"message\":\"listening on {}\",\"port\":44468}\n"), std::string::npos)
      << out;
  EXPECT_EQ(out.find("not shown"), std::string::npos);
}

}  // namespace
}  // namespace bodega
