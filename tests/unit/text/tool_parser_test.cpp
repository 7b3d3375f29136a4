#include "text/tool_parser.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace bodega::text {
namespace {

namespace json = boost::json;

struct Case {
  std::string name;
  ToolFormat format;
  std::shared_ptr<const ToolDeclarations> declared;
  std::string text;
  json::object expected;
};

std::vector<Case> load_cases() {
  std::vector<Case> cases;
  const std::filesystem::path folder = std::string(BODEGA_SOURCE_DIR) + "/tests/golden/tools";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const json::object all = json::parse(text.str()).as_object();
    auto declared = std::make_shared<ToolDeclarations>();
    for (const json::value& tool : all.at("tools").as_array()) {
      declared->push_back(
          {std::string(tool.at("name").as_string()), tool.at("parameters").as_object()});
    }
    for (const json::value& format : all.at("formats").as_array()) {
      for (const json::value& one : all.at("cases").as_array()) {
        cases.push_back({entry.path().stem().string(), tool_format(format.as_string()).value(),
                         declared, std::string(one.at("text").as_string()), one.as_object()});
      }
    }
  }
  return cases;
}

void merge(ParsedText& into, ParsedText piece) {
  into.reasoning += piece.reasoning;
  into.content += piece.content;
  for (ToolCall& call : piece.calls) into.calls.push_back(std::move(call));
}

ParsedText parse(const Case& one, const std::vector<std::string_view>& pieces) {
  const auto parser = make_tool_parser(one.format, one.declared);
  ParsedText parsed;
  for (const std::string_view piece : pieces) merge(parsed, parser->push(piece));
  merge(parsed, parser->finish());
  return parsed;
}

void expect_same(const ParsedText& parsed, const Case& one, const std::string& how) {
  const std::string where = one.name + " " + how + ": " + one.text;
  EXPECT_EQ(parsed.content, one.expected.at("content").as_string()) << where;
  const json::value* reasoning = one.expected.if_contains("reasoning");
  EXPECT_EQ(parsed.reasoning, reasoning != nullptr ? reasoning->as_string() : "") << where;
  const json::array& calls = one.expected.at("calls").as_array();
  ASSERT_EQ(parsed.calls.size(), calls.size()) << where;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(parsed.calls[i].name, calls[i].at("name").as_string()) << where;
    EXPECT_EQ(json::parse(parsed.calls[i].arguments), calls[i].at("arguments")) << where;
    const json::value* id = calls[i].as_object().if_contains("id");
    EXPECT_EQ(parsed.calls[i].id, id != nullptr ? id->as_string() : "") << where;
  }
}

TEST(ToolParserTest, WholeAndCutAtEachPlace) {
  const std::vector<Case> cases = load_cases();
  ASSERT_GT(cases.size(), 100U);
  for (const Case& one : cases) {
    const std::string_view text(one.text);
    expect_same(parse(one, {text}), one, "whole");
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      expect_same(parse(one, {text.substr(0, cut), text.substr(cut)}), one,
                  "cut at " + std::to_string(cut));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ToolParserTest, ByteByByteAndInRandomPieces) {
  std::mt19937 random(7);
  for (const Case& one : load_cases()) {
    for (int round = 0; round < 12; ++round) {
      std::vector<std::string_view> pieces;
      for (std::string_view rest(one.text); !rest.empty();) {
        const std::size_t size =
            round == 0 ? 1 : std::min<std::size_t>(1 + random() % 12, rest.size());
        pieces.push_back(rest.substr(0, size));
        rest.remove_prefix(size);
      }
      expect_same(parse(one, pieces), one, "in pieces");
    }
  }
}

TEST(ToolParserTest, TextBeforeACallIsToldAtOnce) {
  for (const char* format :
       {"hermes", "qwen3_coder", "glm4_moe", "minimax_m2", "mistral", "kimi_k2", "json"}) {
    const auto parser =
        make_tool_parser(*tool_format(format), std::make_shared<const ToolDeclarations>());
    EXPECT_EQ(parser->push("Some text").content, "Some text") << format;
    EXPECT_EQ(parser->push(", more").content, ", more") << format;
  }
}

TEST(ToolParserTest, ALongCallIsReadInLinearTime) {
  auto declared = std::make_shared<ToolDeclarations>();
  const auto parser = make_tool_parser(ToolFormat::kHermes, declared);
  ParsedText parsed;
  merge(parsed, parser->push("<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \""));
  for (int i = 0; i < 200'000; ++i) merge(parsed, parser->push("word "));
  merge(parsed, parser->push("\"}}</tool_call>"));
  merge(parsed, parser->finish());
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parsed.content, "");
}

TEST(ToolParserTest, TheTemplateSaysTheFormat) {
  EXPECT_EQ(tool_format_of("{{ tools }} <tool_call>"), ToolFormat::kHermes);
  EXPECT_EQ(tool_format_of("{{ tools }} <tool_call>\n<function="), ToolFormat::kQwen3Coder);
  EXPECT_EQ(tool_format_of("<tool_call>{name}<arg_key>"), ToolFormat::kGlm4);
  EXPECT_EQ(tool_format_of("Environment: ipython {{ tools }}"), ToolFormat::kLlama3Json);
  EXPECT_EQ(tool_format_of("[TOOL_CALLS]"), ToolFormat::kMistral);
  EXPECT_EQ(tool_format_of("<|channel|>"), ToolFormat::kHarmony);
  EXPECT_EQ(tool_format_of("<｜tool▁calls▁begin｜>"), ToolFormat::kDeepSeek);
  EXPECT_EQ(tool_format_of("{% for tool in tools %}"), ToolFormat::kJson);
  EXPECT_EQ(tool_format_of("plain"), std::nullopt);
}

}  // namespace
}  // namespace bodega::text
