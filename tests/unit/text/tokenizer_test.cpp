#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "small_tokenizers.h"

namespace bodega::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string failure_of(const core::GgufVocabulary& vocabulary) {
  try {
    Tokenizer::from_gguf(vocabulary);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile);
    return error.what();
  }
  return "";
}

TEST(Tokenizer, ByteLevelBpeMergesInsideWords) {
  const auto tokenizer =
      Tokenizer::from_gguf(byte_level_vocabulary({"a b", "ab c", "\xC4\xA0 abc"}, {"<end>"}));
  EXPECT_THAT(tokenizer->encode("abc abc12", false, false), ElementsAre(257, 258, '1', '2'));
  EXPECT_THAT(tokenizer->encode("ab<end>", false, true), ElementsAre(256, 259));
  EXPECT_EQ(tokenizer->encode("<end>", false, false).size(), 5U);
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  EXPECT_EQ(tokenizer->token_to_id("<end>"), 259);
  EXPECT_EQ(tokenizer->token_to_id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(258),
            "\xC4\xA0"
            "abc");
  EXPECT_EQ(tokenizer->token_bytes(258), " abc");
  EXPECT_EQ(tokenizer->id_to_token(9999), "");
  EXPECT_TRUE(tokenizer->is_special(259));
  EXPECT_FALSE(tokenizer->is_special(258));
}

TEST(Tokenizer, SentencePieceFallsBackToBytes) {
  const auto tokenizer =
      Tokenizer::from_gguf(sentence_piece_vocabulary({"\u2581", "h", "i", "hi", "\u2581hi"}));
  EXPECT_THAT(tokenizer->encode("hi hi", false, false), ElementsAre(263, 263));
  EXPECT_THAT(tokenizer->encode("\u00e9", false, false), ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{263, 3 + 0xC3, 3 + 0xA9}, true), "hi\u00e9");
}

TEST(Tokenizer, AddsTheEndsThatTheFileAsksFor) {
  core::GgufVocabulary vocabulary = sentence_piece_vocabulary({"\u2581", "h", "i"});
  vocabulary.add_bos = true;
  vocabulary.add_eos = true;
  const auto tokenizer = Tokenizer::from_gguf(vocabulary);
  EXPECT_THAT(tokenizer->encode("hi", true, false), ElementsAre(1, 259, 260, 261, 2));
  EXPECT_THAT(tokenizer->encode("hi", false, false), ElementsAre(259, 260, 261));
}

TEST(Tokenizer, RefusesWhatItDoesNotKnowByName) {
  core::GgufVocabulary vocabulary = byte_level_vocabulary({}, {}, "brand-new");
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("\"brand-new\""));
  vocabulary.model = "rwkv";
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("\"rwkv\""));
}

TEST(Tokenizer, RefusesContradictions) {
  core::GgufVocabulary vocabulary = byte_level_vocabulary({"a b"}, {"<end>"});
  vocabulary.types.pop_back();
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("token_type"));
  vocabulary = byte_level_vocabulary({"a b"}, {"<end>"});
  vocabulary.eos = 5000;
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("5000"));
  vocabulary.eos = -1;
  vocabulary.add_eos = true;
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("eos"));
  vocabulary = byte_level_vocabulary({"a b"}, {});
  vocabulary.merges.push_back("ab nonsense");
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("vocabulary"));
  vocabulary = byte_level_vocabulary({}, {});
  vocabulary.tokens[7] = "\xFF";
  EXPECT_THAT(failure_of(vocabulary), HasSubstr("token 7"));
  EXPECT_NE(failure_of(core::GgufVocabulary{}), "");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = Tokenizer::from_gguf(byte_level_vocabulary({}, {}));
  try {
    tokenizer->encode("\xC3(", false, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest);
  }
}

TEST(Tokenizer, JsonOfAnUnknownKindIsRefusedByName) {
  for (const std::string json :
       {R"({"model": {"type": "Quantum"}})", R"({"version": "1.0"})", "{", "[]", ""}) {
    try {
      Tokenizer::from_json(json);
      FAIL() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile) << json;
    }
  }
  try {
    Tokenizer::from_json(R"({"model": {"type": "Quantum", "vocab": {}}})");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"Quantum\""));
  }
}

// Truncation, padding and dropout of a file would change prompts silently or at random.
TEST(Tokenizer, IgnoresTrainingSettingsOfTheFile) {
  const auto tokenizer = Tokenizer::from_json(R"({"version": "1.0",
    "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
    "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "dropout": 0.9, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(tokenizer->encode("ababab", true, false), ElementsAre(2, 2, 2));
  }
}

std::string json_with(const std::string& normalizer, const std::string& model) {
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "pre_tokenizer": null,
    "post_processor": null, "decoder": {"type": "Fuse"}, "normalizer": )" +
         normalizer + R"(, "model": )" + model + "}";
}

// A hostile file must not make a text grow without bound, nor a long word take hours.
TEST(Tokenizer, BoundsWhatAFileMayAskFor) {
  const std::string bpe =
      R"({"type": "BPE", "dropout": null, "unk_token": "a", "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": false, "vocab": {"a": 0}, "merges": []})";
  const std::string step =
      R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"})";
  std::string steps = step;
  for (int i = 0; i < 20; ++i) steps += "," + step;
  const auto grows = Tokenizer::from_json(
      json_with(R"({"type": "Sequence", "normalizers": [)" + steps + "]}", bpe));
  try {
    grows->encode("aaaa", false, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest);
    EXPECT_THAT(error.what(), HasSubstr("far too long"));
  }
  EXPECT_THROW(Tokenizer::from_json(json_with(
                   R"({"type": "Prepend", "prepend": ")" + std::string(100, 'a') + R"("})", bpe)),
               Error);
  EXPECT_THROW(Tokenizer::from_json(json_with("null", R"({"type": "WordPiece", "unk_token": "a",
    "continuing_subword_prefix": "##", "max_input_chars_per_word": 1000000, "vocab": {"a": 0}})")),
               Error);
}

}  // namespace
}  // namespace bodega::text
