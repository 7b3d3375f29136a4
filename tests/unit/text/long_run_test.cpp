#include <gtest/gtest.h>

#include <ctime>

#include "small_tokenizers.h"

// One long run without breaks stays near-linear: far below a second each, and not more than in
// proportion to its length.
namespace bodega::text {
namespace {

std::string repeated(const std::string& unit, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += unit;
  return text;
}

// Processor time, as the machine may be busy.
double encode_seconds(const Tokenizer& tokenizer, const std::string& text) {
  const std::clock_t start = std::clock();
  const std::vector<TokenId> ids = tokenizer.encode(text, false, false);
  const double spent = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  return spent;
}

void expect_near_linear(const Tokenizer& tokenizer, const std::string& name) {
  for (const std::string unit : {"a", "\u4e2d", "-", " ", "1"}) {
    const double whole = encode_seconds(tokenizer, repeated(unit, 200'000));
    EXPECT_LT(whole, BODEGA_LONG_RUN_SECONDS) << name << " \"" << unit << '"';
    const double quarter = encode_seconds(tokenizer, repeated(unit, 50'000));
    EXPECT_LT(whole, 8 * quarter + 0.1) << name << " \"" << unit << '"';
  }
}

TEST(LongRun, EveryPreTypeOfByteLevelBpe) {
  const std::vector<std::string> merges = {"a a", "aa aa", "- -", "\xC4\xA0 \xC4\xA0"};
  for (const std::string pre : {"smollm", "gpt-2", "default", "llama-bpe", "qwen2", "tekken",
                                "deepseek-v3", "deepseek-coder"}) {
    expect_near_linear(*Tokenizer::from_gguf(byte_level_vocabulary(merges, {"<end>"}, pre)), pre);
  }
}

TEST(LongRun, SentencePiece) {
  expect_near_linear(*Tokenizer::from_gguf(sentence_piece_vocabulary(
                         {"\u2581", "a", "aa", "aaaa", "-", "--", "\u4e2d", "\u2581\u2581"})),
                     "sentencepiece");
}

}  // namespace
}  // namespace bodega::text
