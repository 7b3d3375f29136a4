#include "base/utf8.h"

#include <gtest/gtest.h>

namespace bodega {
namespace {

TEST(Utf8, EveryScalarValueIsValidAndNothingElseIs) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    append_utf8(text, c);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(is_valid_utf8(text), !surrogate) << std::hex << static_cast<unsigned>(c);
  }
}

TEST(Utf8, RefusesOverlongFormsAndStrayBytes) {
  using namespace std::string_view_literals;
  for (const auto bytes : {"\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xF0\x8F\xBF\xBF"sv,
                           "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv, "\x80"sv,
                           "a\xC3"sv, "\xE2\x82"sv, "\xE2\x28\xA1"sv, "\xED\xA0\x80"sv}) {
    EXPECT_FALSE(is_valid_utf8(bytes));
  }
  EXPECT_TRUE(is_valid_utf8("\0"sv));
  EXPECT_TRUE(is_valid_utf8(""sv));
}

TEST(Utf8, KnowsACutCharacterFromABrokenOne) {
  EXPECT_EQ(valid_utf8_prefix("ab\xF0\x9F\x98"), 2U);
  EXPECT_TRUE(ends_inside_character("ab\xF0\x9F\x98"));
  EXPECT_TRUE(ends_inside_character("\xC3"));
  EXPECT_FALSE(ends_inside_character("ab"));
  EXPECT_FALSE(ends_inside_character("\xED\xA0"));  // the start of a surrogate: no end helps
  EXPECT_FALSE(ends_inside_character("\xC3\x28"));
  EXPECT_FALSE(ends_inside_character("\xFF\xC3"));  // broken before the cut
}

// The worked example of the Unicode standard, section 3.9 (U+FFFD Substitution of Maximal
// Subparts).
TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(replace_invalid_utf8("na\xC3\xAFve"), "na\xC3\xAFve");
}

}  // namespace
}  // namespace bodega
