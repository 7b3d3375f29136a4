#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <random>
#include <regex>

#include "base/errors.h"
#include "small_tokenizers.h"

namespace bodega::text {
namespace {

namespace json = boost::json;
using core::GrammarKind;
using core::GrammarSource;

constexpr int kLongest = 3000;

struct Walk {
  std::string text;
  bool complete = false;
};

class GrammarTest : public testing::Test {
 protected:
  GrammarTest() {
    for (int id = 0; id < tokenizer_->vocab_size(); ++id) {
      if (tokenizer_->is_special(id)) ends_.push_back(id);
    }
    compiler_ = std::make_unique<GrammarCompiler>(tokenizer_, ends_);
  }

  std::unique_ptr<core::TokenMatcher> start(const GrammarSource& source,
                                            ThoughtBefore thought = ThoughtBefore::kNone) {
    Thought before;
    before.before = thought;
    return compiler_->constrain(compiler_->compile(source), before)->start();
  }

  std::vector<TokenId> allowed(core::TokenMatcher& matcher) const {
    std::vector<std::uint32_t> words((tokenizer_->vocab_size() + 31) / 32);
    std::vector<TokenId> ids;
    if (matcher.allowed(words) != core::NextTokens::kListed) return ids;
    for (int id = 0; id < tokenizer_->vocab_size(); ++id) {
      if ((words[id / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
    }
    return ids;
  }

  bool is_end(TokenId id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }

  // A model without a mind of its own: any allowed token.
  Walk walk(const GrammarSource& source, unsigned seed) {
    std::mt19937 random(seed);
    const auto matcher = start(source);
    Walk walk;
    for (int i = 0; i < kLongest && !walk.complete; ++i) {
      const std::vector<TokenId> ids = allowed(*matcher);
      if (ids.empty()) {
        ADD_FAILURE() << "dead end after " << walk.text;
        break;
      }
      const TokenId id = ids[random() % ids.size()];
      if (is_end(id)) {
        walk.complete = true;
        break;
      }
      walk.text += tokenizer_->token_bytes(id);
      walk.complete = matcher->accept(id);
    }
    return walk;
  }

  // Feeds `text` byte by byte; how many bytes the grammar took.
  std::size_t taken(core::TokenMatcher& matcher, std::string_view text) const {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const TokenId id = static_cast<unsigned char>(text[i]);
      std::vector<std::uint32_t> words((tokenizer_->vocab_size() + 31) / 32);
      const bool listed = matcher.allowed(words) == core::NextTokens::kListed;
      if (listed && (words[id / 32] >> (id % 32) & 1U) == 0) return i;
      if (matcher.accept(id)) return i + 1;
    }
    return text.size();
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = Tokenizer::from_gguf(byte_level_vocabulary(
      {"\" :", "t r", "u e", "tr ue", "< /", "1 2", "> {"}, {"<|end|>", "<|eot|>"}));
  std::vector<TokenId> ends_;
  std::unique_ptr<GrammarCompiler> compiler_;
};

GrammarSource schema(std::string text) { return {GrammarKind::kJsonSchema, std::move(text)}; }

TEST_F(GrammarTest, EveryWalkThroughASchemaIsItsInstance) {
  const GrammarSource source = schema(R"({"type":"object","properties":{
      "name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":130},
      "on":{"type":"boolean"},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3}},
      "required":["name","age"],"additionalProperties":false})");
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Walk walk = this->walk(source, seed);
    ASSERT_TRUE(walk.complete) << walk.text;
    const json::object object = json::parse(walk.text).as_object();
    EXPECT_TRUE(object.at("name").is_string());
    const std::int64_t age = object.at("age").as_int64();
    EXPECT_TRUE(age >= 0 && age <= 130) << age;
    if (object.contains("on")) {
      EXPECT_TRUE(object.at("on").is_bool());
    }
    if (object.contains("tags")) {
      EXPECT_LE(object.at("tags").as_array().size(), 3U);
    }
    EXPECT_FALSE(std::regex_search(walk.text, std::regex("[ \n]{14}"))) << "a run of blanks";
  }
}

TEST_F(GrammarTest, BlanksBetweenTokensAreFew) {
  const auto matcher = start(schema(R"({"type":"object"})"));
  EXPECT_EQ(taken(*matcher, "{  "), 2U);
  const auto lines = start(schema(R"({"type":"object"})"));
  EXPECT_EQ(taken(*lines, "{\n    \"a\": [\n      1\n    ]\n}x"), 28U);
}

TEST_F(GrammarTest, PropertiesComeInAnyOrderOrTheirNamesAreNotOffered) {
  const std::string text = R"({"b":2,"a":1})";
  const auto matcher = start(
      schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})"));
  EXPECT_EQ(taken(*matcher, text), std::string_view(R"({"b":2)").size());  // no way to a junk key
}

TEST_F(GrammarTest, RegexAndLark) {
  const std::regex date("[0-9]{4}-[0-9]{2}");
  for (const char* text : {"[0-9]{4}-[0-9]{2}", "^[0-9]{4}-[0-9]{2}$"}) {
    const Walk walk = this->walk({GrammarKind::kRegex, text}, 1);
    EXPECT_TRUE(walk.complete);
    EXPECT_TRUE(std::regex_match(walk.text, date)) << walk.text;
  }
  const Walk choice = walk({GrammarKind::kLark, "start: \"red\" | \"gr\\u00fcn\"\n"}, 3);
  EXPECT_TRUE(choice.text == "red" || choice.text == "gr\xC3\xBCn") << choice.text;
  EXPECT_TRUE(choice.complete);
}

TEST_F(GrammarTest, EveryEndOfTheModelMayEndIt) {
  const auto matcher = start({GrammarKind::kRegex, "a*"});
  EXPECT_THAT(allowed(*matcher), testing::IsSupersetOf(ends_));
  EXPECT_EQ(ends_.size(), 2U);
}

struct Refused {
  GrammarSource source;
  std::string path;
};

TEST_F(GrammarTest, WhatCannotBeCompiledIsRefusedWithItsPlace) {
  std::vector<Refused> cases;
  const auto add = [&](GrammarKind kind, std::string text, const char* path) {
    cases.push_back({{kind, std::move(text)}, path});
  };
  using enum GrammarKind;
  add(kJsonSchema, R"({"properties":{"a":{"not":{"type":"string"}}}})", ".properties.a.not");
  add(kJsonSchema, R"({"type":"array","uniqueItems":true})", ".uniqueItems");
  add(kJsonSchema, R"({"items":{"anyOf":[{"type":"string"},{"if":{}}]}})", ".items.anyOf[1].if");
  add(kJsonSchema, R"({"properties":{"a":{"type":"string","pattern":"^*z$"}}})",
      ".properties.a.pattern");
  add(kJsonSchema, R"({"type":"string","pattern":"^{3}z$"})", ".pattern");
  add(kJsonSchema, R"({"type":"string","format":"no such format"})", ".format");
  add(kJsonSchema, R"({"$ref":"https://example.com/schema"})", ".$ref");
  add(kJsonSchema, R"({"type":"sting"})", ".type");
  add(kJsonSchema, R"({"type":"object","properties":{"a":{"minimum":"7"}}})",
      ".properties.a.minimum");
  add(kJsonSchema, "[1]", "");
  add(kJsonSchema, "{", "");
  add(kJsonSchema, R"({"type":"integer","minimum":3,"maximum":2})", "");
  add(kRegex, "(a", "");
  add(kRegex, "a(?=b)", "");
  add(kRegex, std::string(50'000, '('), "");
  add(kRegex, "*a", "");
  add(kRegex, "(+a)|b", "");
  add(kRegex, "a|{2}", "");
  add(kLark, "start: nowhere\n", "");
  add(kLark, "start: " + std::string(50'000, '('), "");
  add(kLark, "root ::= \"a\"", "");
  add(kLark, std::string(300'000, ' '), "");
  for (const Refused& refused : cases) {
    const std::string text = refused.source.text.substr(0, 80);
    try {
      compiler_->compile(refused.source);
      ADD_FAILURE() << "compiled: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest) << text;
      EXPECT_EQ(error.param(), refused.path) << text << ": " << error.what();
      EXPECT_FALSE(std::string(error.what()).empty());
    }
  }
}

std::string nested_one_of(int depth) {
  if (depth == 0) return R"({"type":"string"})";
  const std::string inner = nested_one_of(depth - 1);
  return R"({"oneOf":[)" + inner + R"(,{"type":"object","properties":{"k)" + std::to_string(depth) +
         R"(":)" + inner + "}}]}";
}

std::string nested_arrays(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += R"({"type":"array","items":)";
  return text + "{}" + std::string(depth, '}');
}

TEST_F(GrammarTest, RepeatSignsWithSomethingToRepeatAreTaken) {
  for (const char* text : {"a*", "(a)+", "[*]+", "\\*+", "(?:a)?", "a{2}", "[]*]{1,2}", "^a*$"}) {
    EXPECT_NO_THROW(compiler_->compile({GrammarKind::kRegex, text})) << text;
  }
}

TEST_F(GrammarTest, ObjectsAreClosedOnlyWhereThatLeavesAWay) {
  const auto merged = start(
      schema(R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},)"
             R"({"properties":{"b":{"type":"integer"}},"required":["b"]}],"type":"object"})"));
  EXPECT_EQ(taken(*merged, R"({"a":1,"b":2})"), 13U);
  const auto open = start(schema(R"({"type":"object","properties":{"a":{"type":"integer"}},)"
                                 R"("additionalProperties":{"type":"boolean"}})"));
  EXPECT_EQ(taken(*open, R"({"z":true})"), 10U);
}

TEST_F(GrammarTest, CostlySchemasEndSoon) {
  for (const std::string& text :
       {nested_one_of(8), nested_one_of(14), nested_arrays(40), nested_arrays(2000)}) {
    const auto begun = std::chrono::steady_clock::now();
    try {
      compiler_->compile(schema(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    EXPECT_LT(took.count(), 5.0 * BODEGA_LONG_RUN_SECONDS) << text.substr(0, 60);
  }
}

TEST_F(GrammarTest, TheGrammarBindsAfterTheThought) {
  const GrammarSource source = schema(R"({"type":"object","properties":{"a":{"type":"integer"}},)"
                                      R"("required":["a"],"additionalProperties":false})");
  const auto open = start(source, ThoughtBefore::kOpen);
  const std::string thought = "any { text ends < here</think>";
  EXPECT_EQ(taken(*open, thought + R"({"a":12})" + "x"), thought.size() + 8);
  const auto may = start(source, ThoughtBefore::kMayOpen);
  EXPECT_EQ(taken(*may, "<think>hm</think>{\"b"), 19U);
  const auto none = start(source, ThoughtBefore::kMayOpen);
  EXPECT_EQ(taken(*none, "{\"a\":1}"), 7U);
  const auto other = start(source, ThoughtBefore::kMayOpen);
  EXPECT_EQ(taken(*other, "<thought"), 3U);
}

TEST_F(GrammarTest, NoTokenClosesTheThoughtAndGoesOn) {
  const auto open = start(schema(R"({"type":"object"})"), ThoughtBefore::kOpen);
  EXPECT_EQ(taken(*open, "x</think"), 8U);
  const TokenId both = *tokenizer_->token_to_id(">{");
  const std::vector<TokenId> ids = allowed(*open);
  EXPECT_THAT(ids, testing::Not(testing::Contains(both)));
  EXPECT_THAT(ids, testing::Contains('>'));
  EXPECT_THAT(ids, testing::Not(testing::Contains(ends_[0])));
}

TEST_F(GrammarTest, AThoughtEndsWithItsBudget) {
  Thought thought;
  thought.before = ThoughtBefore::kOpen;
  thought.most_tokens = 5;
  const auto free = compiler_->constrain(nullptr, thought)->start();
  EXPECT_EQ(taken(*free, "12345</think>any <think> text"), 29U);
  const auto cut = compiler_->constrain(nullptr, thought)->start();
  EXPECT_EQ(taken(*cut, "123456"), 5U);
  const auto open = compiler_->constrain(nullptr, thought)->start();
  EXPECT_EQ(taken(*open, "123</think>"), 11U);
  thought.before = ThoughtBefore::kMayOpen;
  thought.most_tokens = 0;
  const auto bound =
      compiler_->constrain(compiler_->compile(schema(R"({"enum":[1]})")), thought)->start();
  EXPECT_EQ(taken(*bound, "<think>x"), 7U);
  EXPECT_EQ(taken(*bound, "</think>1"), 9U);
  const auto none = compiler_->constrain(nullptr, thought)->start();
  EXPECT_EQ(taken(*none, "<b>no thought</b> at all"), 24U);
}

TEST_F(GrammarTest, OneGrammarServesManyAnswersAtOnce) {
  const auto grammar = compiler_->compile(schema(R"({"enum":["one","two"]})"));
  EXPECT_EQ(grammar, compiler_->compile(schema(R"({"enum":["one","two"]})")));
  const auto constraint = compiler_->constrain(grammar, Thought());
  const auto a = constraint->start();
  const auto b = constraint->start();
  EXPECT_EQ(taken(*a, "\"on"), 3U);
  EXPECT_EQ(taken(*b, "\"two\""), 5U);
  EXPECT_EQ(taken(*a, "e\""), 2U);
}

}  // namespace
}  // namespace bodega::text
