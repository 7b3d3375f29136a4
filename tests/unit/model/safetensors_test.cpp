#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstring>
#include <functional>

#include "base/errors.h"
#include "fixtures.h"

namespace bodega::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::uint64_t header_length(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return length;
}

std::string with_header(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

// The file with its header changed and its data kept.
std::string edit(const std::string& file, const std::function<void(json::object&)>& change) {
  const std::uint64_t length = header_length(file);
  json::value header = json::parse(file.substr(8, length));
  change(header.as_object());
  return with_header(json::serialize(header), file.substr(8 + length));
}

// What parsing these bytes ends with: "" or the error's message. The bytes lie in a block of
// exactly their size, so that a sanitizer sees a read beyond.
std::string parse_error(const std::string& file) {
  const std::vector<char> exact(file.begin(), file.end());
  try {
    SafetensorsHeader::parse(std::as_bytes(std::span(exact)), "model.safetensors");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile);
    return error.what();
  }
}

const std::string& good_file() {
  static const std::string file = read_file(fixture_path("mlx_mxfp4") / "model.safetensors");
  return file;
}

constexpr const char* kNorm = "model.norm.weight";

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string& file = good_file();
  EXPECT_EQ(parse_error(file), "");
  const std::size_t header_end = 8 + header_length(file);
  for (std::size_t size = 0; size < file.size(); size += size < header_end + 64 ? 1 : 97) {
    EXPECT_THAT(parse_error(file.substr(0, size)), HasSubstr("model.safetensors")) << size;
  }
}

TEST(Safetensors, NamesTheMissingBytes) {
  const std::string& file = good_file();
  EXPECT_THAT(parse_error(file.substr(0, file.size() - 1)),
              AllOf(HasSubstr("tensor '"), HasSubstr(": 1 of its")));
  EXPECT_THAT(parse_error(file + "x"), HasSubstr("1 bytes follow the last tensor"));
}

TEST(Safetensors, SurvivesBitFlipsOfTheHeader) {
  std::string file = good_file();
  const std::size_t header_end = 8 + header_length(file);
  int refused = 0;
  for (std::size_t at = 0; at < header_end; ++at) {
    for (const int bit : {0, 3, 7}) {
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
      refused += parse_error(file).empty() ? 0 : 1;
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
    }
  }
  // Most flips land in names, which only the plan can tell from right ones.
  EXPECT_GT(refused, static_cast<int>(header_end) * 3 / 4);
}

TEST(Safetensors, RefusesAbsurdHeaderLengths) {
  std::string file = good_file();
  for (const std::uint64_t length :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 40,
        std::uint64_t{file.size()}, std::uint64_t{0}}) {
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_NE(parse_error(file), "") << length;
  }
  std::string half = good_file();
  const std::uint64_t length = header_length(half) / 2;
  std::memcpy(half.data(), &length, sizeof(length));
  EXPECT_THAT(parse_error(half), HasSubstr("JSON"));
}

TEST(Safetensors, RefusesWrongOffsets) {
  const auto with_offsets = [](std::int64_t begin, std::int64_t end) {
    return edit(good_file(), [&](json::object& header) {
      header[kNorm].as_object()["data_offsets"] = json::array{begin, end};
    });
  };
  const json::value good = json::parse(good_file().substr(8, header_length(good_file())));
  const json::array offsets = good.at(kNorm).at("data_offsets").as_array();
  const std::int64_t begin = offsets[0].as_int64();
  const std::int64_t end = offsets[1].as_int64();
  EXPECT_THAT(parse_error(with_offsets(begin - 1, end - 1)), HasSubstr("overlap"));
  EXPECT_THAT(parse_error(with_offsets(begin + 1, end + 1)), HasSubstr("gap"));
  EXPECT_THAT(parse_error(with_offsets(begin, end - 1)), HasSubstr(kNorm));
  EXPECT_THAT(parse_error(with_offsets(end, begin)), HasSubstr(kNorm));
  EXPECT_THAT(parse_error(with_offsets(-begin, end)), HasSubstr(kNorm));
  EXPECT_THAT(parse_error(with_offsets(0, std::int64_t{1} << 62)), HasSubstr(kNorm));
}

TEST(Safetensors, RefusesWrongEntries) {
  const auto change = [](const std::function<void(json::object&)>& edit_tensor) {
    return parse_error(
        edit(good_file(), [&](json::object& header) { edit_tensor(header[kNorm].as_object()); }));
  };
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_THAT(change([&](auto& t) { t["shape"] = json::array{big, big, 4}; }), HasSubstr(kNorm));
  EXPECT_THAT(change([&](auto& t) { t["shape"] = json::array{0, big, big}; }), HasSubstr(kNorm));
  EXPECT_THAT(change([](auto& t) { t["shape"] = json::array{63}; }), HasSubstr("[63]"));
  EXPECT_THAT(change([](auto& t) { t["shape"] = json::array{-64}; }), HasSubstr(kNorm));
  EXPECT_THAT(change([](auto& t) { t["shape"] = json::array{64.5}; }), HasSubstr(kNorm));
  EXPECT_THAT(change([](auto& t) { t["dtype"] = "F12"; }), HasSubstr("F12"));
  EXPECT_THAT(change([](auto& t) { t["dtype"] = 3; }), HasSubstr(kNorm));
  EXPECT_THAT(change([](auto& t) { t.erase("dtype"); }), HasSubstr(kNorm));
  EXPECT_THAT(change([](auto& t) { t["more"] = 1; }), HasSubstr(kNorm));
  EXPECT_THAT(parse_error(edit(good_file(), [](json::object& h) { h[kNorm] = "x"; })),
              HasSubstr(kNorm));
  EXPECT_THAT(parse_error(edit(good_file(), [](json::object& h) { h["__metadata__"] = 1; })),
              HasSubstr("__metadata__"));
}

TEST(Safetensors, RefusesHeadersThatAreNoObject) {
  for (const std::string& header : std::vector<std::string>{
           "", "[]", "7", "{", R"({"a": })", "{\"\xFF\": {}}", std::string(50000, '['),
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
               "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"}) {
    EXPECT_NE(parse_error(with_header(header, "x")), "") << header.substr(0, 20);
  }
  EXPECT_EQ(parse_error(with_header("{}   ", "")), "");
  EXPECT_EQ(
      parse_error(with_header(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x")), "");
}

TEST(SafetensorsIndex, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"../model.safetensors", "/etc/model.safetensors", "a/b.safetensors",
                           "..", ".hidden.safetensors", "model.bin", "a\\\\b.safetensors", ""}) {
    const std::string text = std::string(R"({"weight_map": {"x": ")") + name + "\"}}";
    EXPECT_THROW(parse_safetensors_index(text, "index"), Error) << name;
  }
  EXPECT_THROW(parse_safetensors_index(R"({"weight_map": {"x": 1}})", "index"), Error);
  EXPECT_THROW(parse_safetensors_index(R"({"weight_map": {}})", "index"), Error);
  EXPECT_THROW(parse_safetensors_index("{}", "index"), Error);
}

}  // namespace
}  // namespace bodega::model
