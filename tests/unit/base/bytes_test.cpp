#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace bodega {
namespace {

TEST(Bytes, ParsesSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("512"), 512U);
  EXPECT_EQ(parse_bytes("512B"), 512U);
  EXPECT_EQ(parse_bytes("64k"), 64 * kKiB);
  EXPECT_EQ(parse_bytes("64KiB"), 64 * kKiB);
  EXPECT_EQ(parse_bytes("64 KB"), 64 * kKiB);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3 * kGiB / 2);
  EXPECT_EQ(parse_bytes(".25M"), kMiB / 4);
  EXPECT_EQ(parse_bytes("2T"), 2048 * kGiB);
  EXPECT_EQ(parse_bytes("9223372036854775808"), std::uint64_t{1} << 63);
}

TEST(Bytes, RefusesEverythingElse) {
  for (const char* text :
       {"", " ", "G", ".", "-1", "+1", "1.2.3", "12X", "12KiBs", "0x10", "1e3",
        "9223372036854775809", "8388609T", "99999999999999999999", "1.0000001G", "12K B x"}) {
    EXPECT_THROW(parse_bytes(text), Error) << text;
  }
}

TEST(Bytes, TheErrorQuotesTheText) {
  try {
    parse_bytes("many");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("\"many\""), std::string::npos);
  }
}

TEST(Bytes, FormatsWithOneDecimal) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(kKiB), "1.0 KiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(90 * kMiB + kMiB / 2), "90.5 MiB");
  EXPECT_EQ(format_bytes(4096 * 1024 * kGiB), "4096.0 TiB");
}

}  // namespace
}  // namespace bodega
