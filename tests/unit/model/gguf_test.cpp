#include "model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/errors.h"
#include "fixtures.h"
#include "model/config_gguf.h"

namespace bodega::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kFile = "model.gguf";
constexpr std::size_t kVersion = 4;  // offsets in the preamble
constexpr std::size_t kTensorCount = 8;
constexpr std::size_t kMetadataCount = 16;

// What parsing these bytes and reading the configuration ends with: "" or the error's message. The
// bytes lie in a block of exactly their size, so that a sanitizer sees a read beyond.
std::string parse_error(const std::string& file) {
  const std::vector<char> exact(file.begin(), file.end());
  try {
    const GgufHeader header = GgufHeader::parse(std::as_bytes(std::span(exact)), kFile);
    config_from_gguf(header, kFile);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile);
    return error.what();
  }
}

const std::string& good_file() {
  static const std::string file = read_file(fixture_path("gguf_q4_0"));
  return file;
}

std::size_t data_begin() {
  static const std::size_t begin =
      GgufHeader::parse(std::as_bytes(std::span(good_file().data(), good_file().size())), kFile)
          .data_begin();
  return begin;
}

template <typename T>
std::string patched(std::string file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
  return file;
}

std::size_t position(const std::string& text) {
  const std::size_t at = good_file().find(text);
  EXPECT_NE(at, std::string::npos) << text;
  return at;
}

// Where a tensor's fields lie: after its name come the count of dimensions, two sizes, type,
// offset.
struct TensorFields {
  explicit TensorFields(const std::string& name) : dimensions(position(name) + name.size()) {}
  std::size_t dimensions;
  std::size_t columns = dimensions + 4;
  std::size_t rows = dimensions + 12;
  std::size_t type = dimensions + 20;
  std::size_t offset = dimensions + 24;
};

const std::string kQuery = "blk.0.attn_q.weight";

TEST(Gguf, RefusesEveryTruncation) {
  EXPECT_EQ(parse_error(good_file()), "");
  for (std::size_t size = 0; size < good_file().size() - 32;
       size += size < data_begin() + 64 ? 1 : 97) {
    EXPECT_THAT(parse_error(good_file().substr(0, size)), HasSubstr(kFile)) << size;
  }
}

TEST(Gguf, NamesTheTensorThatIsCutOff) {
  const std::string half = good_file().substr(0, good_file().size() / 2);
  EXPECT_THAT(parse_error(half), AllOf(HasSubstr("tensor '"), HasSubstr("bytes are missing")));
  EXPECT_THAT(parse_error(good_file() + std::string(64, 'x')), HasSubstr("follow the last tensor"));
}

TEST(Gguf, SurvivesBitFlipsOfTheHeader) {
  std::string file = good_file();
  int refused = 0;
  for (std::size_t at = 0; at < data_begin(); ++at) {
    for (const int bit : {0, 3, 7}) {
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
      refused += parse_error(file).empty() ? 0 : 1;
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
    }
  }
  EXPECT_GT(refused, static_cast<int>(data_begin()));
}

TEST(Gguf, RefusesWrongPreambles) {
  EXPECT_THAT(parse_error("GGML" + good_file().substr(4)), HasSubstr("not a GGUF file"));
  EXPECT_THAT(parse_error(patched<std::uint32_t>(good_file(), kVersion, 1)),
              HasSubstr("version 1"));
  EXPECT_THAT(parse_error(patched<std::uint32_t>(good_file(), kVersion, 0x03000000)),
              HasSubstr("big-endian"));
  EXPECT_EQ(parse_error(patched<std::uint32_t>(good_file(), kVersion, 2)), "");
  for (const std::size_t at : {kTensorCount, kMetadataCount}) {
    for (const std::uint64_t count : {~std::uint64_t{0}, std::uint64_t{1} << 60}) {
      EXPECT_THAT(parse_error(patched(good_file(), at, count)), HasSubstr("promises more"));
    }
  }
}

TEST(Gguf, RefusesTensorsThatLieWrong) {
  const TensorFields query(kQuery);
  std::uint64_t offset = 0;
  std::memcpy(&offset, good_file().data() + query.offset, sizeof(offset));
  ASSERT_GT(offset, 32U);
  EXPECT_THAT(parse_error(patched(good_file(), query.offset, offset - 32)), HasSubstr("overlap"));
  EXPECT_NE(parse_error(patched(good_file(), query.offset, offset + 32)), "");
  EXPECT_NE(parse_error(patched(good_file(), query.offset, offset + 1)), "");
  EXPECT_THAT(parse_error(patched(good_file(), query.offset, ~std::uint64_t{0})),
              HasSubstr(kQuery));
  EXPECT_THAT(parse_error(patched(good_file(), query.rows, std::uint64_t{1} << 63)),
              HasSubstr(kQuery));
  EXPECT_THAT(parse_error(patched(good_file(), query.columns, std::uint64_t{48})),
              AllOf(HasSubstr(kQuery), HasSubstr("multiple of 32")));
  EXPECT_THAT(parse_error(patched(good_file(), query.dimensions, std::uint32_t{5})),
              HasSubstr("5 dimensions"));
}

TEST(Gguf, RefusesTypesByTensorAndName) {
  const TensorFields query(kQuery);
  EXPECT_THAT(parse_error(patched(good_file(), query.type, std::uint32_t{12})),
              AllOf(HasSubstr(kQuery), HasSubstr("Q4_K")));
  EXPECT_THAT(parse_error(patched(good_file(), query.type, std::uint32_t{999})),
              AllOf(HasSubstr(kQuery), HasSubstr("999")));
}

TEST(Gguf, RefusesDuplicatesAndBadText) {
  std::string twin = good_file();
  twin.replace(position("blk.0.attn_k.weight"), kQuery.size(), kQuery);
  EXPECT_THAT(parse_error(twin), AllOf(HasSubstr(kQuery), HasSubstr("twice")));
  std::string bad = good_file();
  bad[position(kQuery)] = '\xFF';
  EXPECT_THAT(parse_error(bad), HasSubstr("UTF-8"));
  std::string key = good_file();
  key.replace(position("llama.block_count"), 17, "llama.block_coun\xC0");
  EXPECT_THAT(parse_error(key), HasSubstr("UTF-8"));
}

TEST(Gguf, RefusesWhatTheArchitectureDoesNotCover) {
  const auto renamed = [](const std::string& from, const std::string& to) {
    std::string file = good_file();
    file.replace(position(from), from.size(), to);
    return parse_error(file);
  };
  std::string other = good_file();
  other.replace(position("llama"), 5, "gemma");
  EXPECT_THAT(parse_error(other), HasSubstr("gemma"));
  EXPECT_THAT(renamed("llama.block_count", "llama.block_coint"), HasSubstr("llama.block_count"));
  EXPECT_THAT(renamed("llama.rope.freq_base", "llama.residual_scale"),
              HasSubstr("llama.residual_scale"));
}

TEST(Gguf, ValuesKeepTheirTypes) {
  const auto bytes = std::as_bytes(std::span(good_file().data(), good_file().size()));
  const GgufHeader header = GgufHeader::parse(bytes, kFile);
  EXPECT_EQ(header.integer("llama.block_count"), 1);
  EXPECT_EQ(header.number("llama.block_count"), 1.0);
  EXPECT_EQ(header.integers("llama.block_count"), std::vector<std::int64_t>{1});
  EXPECT_EQ(header.string("general.architecture"), "llama");
  EXPECT_EQ(header.integer("no.such.key"), std::nullopt);
  EXPECT_THROW(header.integer("general.architecture"), Error);
  EXPECT_THROW(header.string("llama.block_count"), Error);
  EXPECT_THROW(header.strings("tokenizer.ggml.token_type"), Error);
  EXPECT_THROW(header.floats("tokenizer.ggml.token_type"), Error);
  EXPECT_THROW(header.boolean("llama.block_count"), Error);
  EXPECT_THROW(header.integers("tokenizer.ggml.tokens"), Error);
}

}  // namespace
}  // namespace bodega::model
