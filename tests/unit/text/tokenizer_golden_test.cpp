#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden_files.h"
#include "text/tokenizer.h"

// Ids of Hugging Face tokenizers and SentencePiece (scripts/golden/text_tokenizers.py).
namespace bodega::text {
namespace {

const json::value& golden() {
  static const json::value value = json::parse(read_golden("tokenizers.json"));
  return value;
}

core::GgufVocabulary vocabulary_of(const json::value& file) {
  core::GgufVocabulary vocabulary;
  vocabulary.tokens = json::value_to<std::vector<std::string>>(file.at("tokens"));
  vocabulary.types = json::value_to<std::vector<std::int32_t>>(file.at("types"));
  return vocabulary;
}

TEST(TokenizerGolden, EveryPreType) {
  const json::value& file = golden().at("pre_types");
  for (const auto& [pre, expected] : file.at("expected").as_object()) {
    core::GgufVocabulary vocabulary = vocabulary_of(file);
    vocabulary.model = "gpt2";
    vocabulary.pre = pre;
    vocabulary.merges = json::value_to<std::vector<std::string>>(file.at("merges"));
    expect_same_ids(Tokenizer::from_gguf(vocabulary), golden().at("texts").as_array(), expected,
                    pre);
  }
}

TEST(TokenizerGolden, SentencePieceFromScores) {
  for (const std::string name : {"sentence_piece", "sentence_piece_without_prefix"}) {
    const json::value& file = golden().at(name);
    core::GgufVocabulary vocabulary = vocabulary_of(file);
    vocabulary.model = "llama";
    vocabulary.scores = json::value_to<std::vector<float>>(file.at("scores"));
    vocabulary.unknown = 0;
    vocabulary.add_space_prefix = name == "sentence_piece";
    const auto tokenizer = Tokenizer::from_gguf(vocabulary);
    for (std::size_t i = 0; i < file.at("texts").as_array().size(); ++i) {
      const std::string text = file.at("texts").at(i).as_string().c_str();
      const std::vector<TokenId> ids = tokenizer->encode(text, false, false);
      EXPECT_EQ(ids, json::value_to<std::vector<TokenId>>(file.at("plain").at(i)))
          << name << ": " << text;
      EXPECT_EQ(tokenizer->decode(ids, true),
                std::string_view(file.at("decoded").at(i).as_string()))
          << name;
    }
  }
}

TEST(TokenizerGolden, TokenizerJson) {
  for (const auto& [name, expected] : golden().at("files").as_object()) {
    const std::shared_ptr<Tokenizer> tokenizer =
        Tokenizer::from_json(read_golden(std::string(name) + ".tokenizer.json"));
    const json::array& texts = expected.at("texts").as_array();
    expect_same_ids(tokenizer, texts, expected, name);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer->encode(std::string_view(texts[i].as_string()), true, true),
                json::value_to<std::vector<TokenId>>(expected.at("with_ends").at(i)))
          << name << ": " << texts[i];
    }
  }
}

// The model itself knows "</s>" as a piece; the library would let ordinary text become it.
TEST(TokenizerGolden, APieceThatIsAControlTokenStaysText) {
  const auto tokenizer = Tokenizer::from_json(read_golden("unigram.tokenizer.json"));
  const TokenId end = *tokenizer->token_to_id("</s>");
  for (const std::string text : {"</s>", "a </s> b", "</s></s>"}) {
    EXPECT_THAT(tokenizer->encode(text, false, false), testing::Not(testing::Contains(end)));
    EXPECT_THAT(tokenizer->encode_rendered(tokenizer->guard(text)),
                testing::Not(testing::Contains(end)));
    EXPECT_THAT(tokenizer->encode(text, false, true), testing::Contains(end));
  }
}

}  // namespace
}  // namespace bodega::text
