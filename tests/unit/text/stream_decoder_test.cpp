#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "small_tokenizers.h"

namespace bodega::text {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<TokenId> bytes_of(const std::string& text, TokenId first = 0) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(first + static_cast<unsigned char>(c));
  return ids;
}

std::shared_ptr<Tokenizer> byte_level() {
  return Tokenizer::from_gguf(byte_level_vocabulary({}, {"<end>"}));
}

std::shared_ptr<Tokenizer> sentence_piece() {
  return Tokenizer::from_gguf(sentence_piece_vocabulary(
      {"\u2581", "a", "b", "\u2581\u2581", "a\u2581b", "\u2581a\u2581b"}));
}

std::shared_ptr<Tokenizer> metaspace() {
  return Tokenizer::from_json(
      R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": null, "post_processor": null,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
              "vocab": [["?", 0.0], ["▁", -1.0], ["a", -1.1], ["b", -1.2], ["▁▁", -1.3], ["▁a▁b", -1.4]]}})");
}

std::shared_ptr<Tokenizer> word_piece() {
  return Tokenizer::from_json(
      R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": {"?": 0, "a": 1, "##b": 2, ".": 3, "c": 4}}})");
}

TEST(StreamDecoder, NeverCutsACharacter) {
  const auto tokenizer = byte_level();
  StreamDecoder stream(tokenizer, true);
  std::string text;
  for (const TokenId id : bytes_of("hi \xF0\x9F\xA6\x89 you")) {
    const std::string piece = stream.push(id);
    EXPECT_THAT(piece, Not(HasSubstr("\uFFFD")));
    text += piece;
  }
  EXPECT_EQ(text + stream.flush(), "hi \xF0\x9F\xA6\x89 you");
}

TEST(StreamDecoder, AnUnfinishedCharacterEndsAsAReplacement) {
  StreamDecoder stream(byte_level(), true);
  EXPECT_EQ(joined(stream, bytes_of("a\xF0\x9F")), "a\uFFFD");
}

TEST(StreamDecoder, PiecesJoinedAreTheWholeDecode) {
  std::mt19937 random(7);
  for (const auto& tokenizer : {byte_level(), sentence_piece(), metaspace(), word_piece()}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<TokenId> ids(random() % 8);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % (tokenizer->vocab_size() + 1));
      for (const bool skip_special : {false, true}) {
        StreamDecoder stream(tokenizer, skip_special);
        ASSERT_EQ(joined(stream, ids), tokenizer->decode(ids, skip_special));
      }
    }
  }
}

// Blanks at the start are the model's own, but for the one that SentencePiece puts before every
// text.
TEST(StreamDecoder, KeepsBlanks) {
  const TokenId first_piece = 259;  // ▁, a, b, ▁▁, a▁b, ▁a▁b
  const auto tokenizer = sentence_piece();
  const auto text = [&](std::vector<TokenId> ids) { return tokenizer->decode(ids, true); };
  EXPECT_EQ(text({first_piece + 1}), "a");
  EXPECT_EQ(text({first_piece, first_piece + 1}), "a");
  EXPECT_EQ(text({first_piece + 3, first_piece + 1}), " a");
  EXPECT_EQ(text({first_piece + 5}), "a b");
  EXPECT_EQ(metaspace()->decode(std::vector<TokenId>{5}, true), "a b");
  EXPECT_EQ(metaspace()->decode(std::vector<TokenId>{4, 2}, true), " a");
}

TEST(StreamDecoder, PrimedItKeepsTheBlankAfterThePrompt) {
  const TokenId first_piece = 259;
  StreamDecoder stream(sentence_piece(), true);
  stream.prime(std::vector<TokenId>{first_piece + 1});
  EXPECT_EQ(joined(stream, {first_piece, first_piece + 2}), " b");
}

TEST(StreamDecoder, ShowsControlTokensOnlyWhenAsked) {
  const auto tokenizer = byte_level();
  StreamDecoder hidden(tokenizer, true);
  EXPECT_EQ(joined(hidden, {'a', 256, 'b'}), "ab");
  StreamDecoder shown(tokenizer, false);
  EXPECT_EQ(joined(shown, {'a', 256, 'b'}), "a<end>b");
}

}  // namespace
}  // namespace bodega::text
