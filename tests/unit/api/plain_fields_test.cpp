// The table of plain fields is tested by walking it: every row is honoured inside its range and
// refused by name outside, whatever is added to it later.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support.h"

namespace bodega::api {
namespace {

class PlainFieldRow : public testing::TestWithParam<PlainField> {
 protected:
  static GenerationFields read(const std::string& value) {
    const json::object body = parse_object(fmt::format("{{\"{}\":{}}}", GetParam().name, value));
    Fields fields(body);
    return read_generation(fields, small_model());
  }
  static double stored(const GenerationFields& read) {
    return std::visit([&](auto member) { return member_value(read, member); }, GetParam().target);
  }

 private:
  template <typename Value>
  static double member_value(const GenerationFields& read, Value core::SamplingParams::* member) {
    return static_cast<double>(read.sampling.*member);
  }
  template <typename Value>
  static double member_value(const GenerationFields& read, Value core::StopParams::* member) {
    return static_cast<double>(read.stop.*member);
  }
  template <typename Value>
  static double member_value(const GenerationFields& read, Value GenerationFields::* member) {
    return static_cast<double>(read.*member);
  }
  static double member_value(const GenerationFields& read,
                             std::optional<int> GenerationFields::* member) {
    return (read.*member).value_or(-77);
  }
};

TEST_P(PlainFieldRow, NullMeansAbsent) {
  const json::object empty;
  Fields none(empty);
  EXPECT_EQ(stored(read("null")), stored(read_generation(none, small_model())));
}

TEST_P(PlainFieldRow, WrongTypesAreRefusedByName) {
  for (const char* value : {"\"1\"", "[]", "{}"}) {
    EXPECT_EQ(refused_param([&] { read(value); }), GetParam().name) << value;
  }
  const char* other = GetParam().is_bool() ? "1" : "true";
  EXPECT_EQ(refused_param([&] { read(other); }), GetParam().name);
}

TEST_P(PlainFieldRow, ValuesInsideTheRangeAreStored) {
  if (GetParam().is_bool()) {
    EXPECT_EQ(stored(read("true")), 1);
    EXPECT_EQ(stored(read("false")), 0);
    return;
  }
  if (GetParam().name == "min_tokens") return;  // bounded by max_tokens, see request_test
  const double most = GetParam().most;
  EXPECT_FLOAT_EQ(stored(read(fmt::format("{}", most))), most);
  if (!GetParam().above_least && GetParam().least >= 0) {
    EXPECT_EQ(stored(read(fmt::format("{}", GetParam().least))), GetParam().least);
  }
}

TEST_P(PlainFieldRow, ValuesOutsideTheRangeAreRefusedByName) {
  if (GetParam().is_bool()) return;
  const double below = GetParam().above_least ? GetParam().least : GetParam().least - 1;
  EXPECT_EQ(refused_param([&] { read(fmt::format("{}", below)); }), GetParam().name);
  EXPECT_EQ(refused_param([&] { read(fmt::format("{}", GetParam().most * 1.5 + 1)); }),
            GetParam().name);
  if (GetParam().above_least) {
    EXPECT_EQ(refused_param([&] { read("1e-300"); }), GetParam().name);
  }
  EXPECT_EQ(refused_param([&] { read("1e400"); }), GetParam().name);
  EXPECT_EQ(refused_param([&] { read("-1e400"); }), GetParam().name);
  if (GetParam().is_integer()) {
    EXPECT_EQ(refused_param([&] { read("1.5"); }), GetParam().name);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PlainFieldRow,
                         testing::ValuesIn(plain_fields().begin(), plain_fields().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace bodega::api
