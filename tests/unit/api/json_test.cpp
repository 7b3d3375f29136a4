#include "api/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/errors.h"

namespace bodega::api {
namespace {

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class RefusedBody : public testing::TestWithParam<std::string> {};

TEST_P(RefusedBody, IsAnInvalidRequest) {
  try {
    parse_object(GetParam());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, RefusedBody,
    testing::Values("", " ", "{", "{\"a\":", "[]", "7", "null", "\"x\"", "{}{}", "{} x",
                    "{\"a\":1,}", "{'a':1}", "{\"a\":NaN}", "{\"a\":01}", std::string("{}\0", 3),
                    "{\"a\":\"\xFF\"}", "{\"a\":\"\xC3\"}", "{\"a\":\"\xED\xA0\x80\"}",
                    "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\"}", "{\"a\":\"\\ud800\\u0041\"}",
                    "{\"\\ud800\":1}", "{\"a\":\"\n\"}", "{\"a\":1,\"a\":2}",
                    "{\"b\":{\"a\":1,\"c\":0,\"a\":2}}", "{\"a\":1,\"\\u0061\":2}",
                    "{\"a\":" + nested(64) + "}", "{\"a\":" + nested(200000) + "}",
                    "\xEF\xBB\xBF{}", "{\"a\":/*c*/1}"));

TEST(ParseObject, AcceptsTheDepthItPromises) {
  EXPECT_NO_THROW(parse_object("{\"a\":" + nested(63) + "}"));
}

TEST(ParseObject, KeepsKeyOrderAndEscapedCharacters) {
  const json::object object =
      parse_object(R"({"z":1,"a":"\ud83d\ude00","m":{"z":1},"b":{"z":2}} )");
  EXPECT_EQ(to_text(object), "{\"z\":1,\"a\":\"\U0001F600\",\"m\":{\"z\":1},\"b\":{\"z\":2}}");
}

TEST(ParseObject, ErrorNamesTheDuplicate) {
  try {
    parse_object(R"({"seed":1,"seed":2})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.param(), "seed");
  }
}

TEST(ToText, WritesNumbersTheShortWay) {
  json::array array{3.5,          0.1, -2.0, 1e300,   widen(-0.1F),
                    widen(1e-7F), 7,   true, nullptr, "a\"b\x01"};
  EXPECT_EQ(to_text(array), "[3.5,0.1,-2,1e+300,-0.1,1e-07,7,true,null,\"a\\\"b\\u0001\"]");
}

TEST(ToText, HasNoWordForInfinity) {
  EXPECT_EQ(to_text(json::array{std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()}),
            "[null,null]");
}

TEST(CountCharacters, CountsCodePoints) {
  EXPECT_EQ(count_characters("a\u00e9\u20ac\U0001F600"), 4);
}

}  // namespace
}  // namespace bodega::api
