#include "server/gap_option.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace bodega::server {
namespace {

TEST(GapOption, IsAMultipleOrATime) {
  EXPECT_DOUBLE_EQ(parse_max_gap("2.2x").factor, 2.2);
  EXPECT_DOUBLE_EQ(parse_max_gap("3").factor, 3);
  EXPECT_DOUBLE_EQ(parse_max_gap("2.2x").seconds, 0);
  EXPECT_DOUBLE_EQ(parse_max_gap("80ms").seconds, 0.08);
  EXPECT_DOUBLE_EQ(parse_max_gap("0.5s").seconds, 0.5);
  EXPECT_DOUBLE_EQ(parse_max_gap("80ms").factor, 0);
}

TEST(GapOption, AnythingElseIsRefused) {
  for (const char* text : {"", "x", "0x", "0.5x", "-2x", "ms", "0ms", "2000s", "2 x", "2xx", "nan",
                           "inf", "1e9", "80 ms", "+2", " 2"}) {
    EXPECT_THROW(parse_max_gap(text), Error) << text;
  }
}

}  // namespace
}  // namespace bodega::server
