#include <gtest/gtest.h>

#include <chrono>

#include "small_tokenizers.h"

// One long run without breaks: near-linear, far below a second each.
namespace bodega::text {
namespace {

std::string repeated(const std::string& unit, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += unit;
  return text;
}

void expect_fast(const Tokenizer& tokenizer, const std::string& unit, const std::string& name) {
  const std::string text = repeated(unit, 200'000);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<TokenId> ids = tokenizer.encode(text, false, false);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count(), 1.0) << name << " \"" << unit << '"';
  EXPECT_EQ(tokenizer.decode(ids, false), text) << name << " \"" << unit << '"';
  if (std::getenv("BODEGA_SHOW_TIMES")) std::printf("%s %zu bytes: %.3f s\n", (name + " " + unit).c_str(), unit.size(), spent.count());
}

TEST(LongRun, EveryKindStaysNearLinear) {
  const std::vector<std::string> units = {"a", "\u4e2d", "-", " ", "\n", "1", "ab ", " \n", "A", "e\u0301"};
  const std::vector<std::string> merges = {"a a", "aa aa", "- -", "\xC4\xA0 \xC4\xA0"};
  for (const std::string pre : {"smollm", "gpt-2", "default", "llama-bpe", "qwen2", "tekken", "gpt-4o",
                                "deepseek-v3", "deepseek-coder", "falcon", "qwen35"}) {
    const auto tokenizer = Tokenizer::from_gguf(byte_level_vocabulary(merges, {"<end>"}, pre));
    // qwen2 composes its text, so e and its accent come back as one character.
    for (const std::string& unit : units) {
      if (unit == "e\u0301" && pre.starts_with("qwen")) continue;
      expect_fast(*tokenizer, unit, pre);
    }
  }
  const auto pieces = Tokenizer::from_gguf(
      sentence_piece_vocabulary({"\u2581", "a", "aa", "aaaa", "-", "--", "\u4e2d", "\u2581\u2581"}));
  for (const std::string& unit : units) expect_fast(*pieces, unit, "sentencepiece");
}

}  // namespace
}  // namespace bodega::text
