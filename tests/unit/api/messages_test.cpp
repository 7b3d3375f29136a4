#include "api/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"

namespace bodega::api {
namespace {

using testing::HasSubstr;

json::array read(const std::string& messages) {
  std::vector<std::string> warnings;
  const json::value value = parse_json(messages);
  json::array out = read_messages(value.as_array(), small_model(), warnings);
  EXPECT_TRUE(warnings.empty());
  return out;
}

struct Shape {
  std::string name;
  std::string given;
  std::string for_template;
};

class MessageShape : public testing::TestWithParam<Shape> {};
TEST_P(MessageShape, IsWhatTemplatesKnow) {
  EXPECT_EQ(to_text(read(fmt::format("[{}]", GetParam().given))),
            fmt::format("[{}]", GetParam().for_template));
}

INSTANTIATE_TEST_SUITE_P(
    Contents, MessageShape,
    testing::Values(
        Shape{"String", R"({"role":"user","content":"x"})", R"({"role":"user","content":"x"})"},
        // Fault 20: an assistant turn with null or no content is still a turn.
        Shape{"Null", R"({"role":"assistant","content":null})",
              R"({"role":"assistant","content":""})"},
        Shape{"Missing", R"({"role":"assistant"})", R"({"role":"assistant","content":""})"},
        // Fault 23: every text part counts, for every role.
        Shape{
            "Parts",
            R"({"role":"user","content":[{"type":"text","text":"A is 4. "},{"type":"text","text":"What is A?"}]})",
            R"({"role":"user","content":"A is 4. What is A?"})"},
        Shape{"ToolParts",
              R"({"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"4"}]})",
              R"({"role":"tool","content":"4","tool_call_id":"c"})"},
        Shape{"NoParts", R"({"role":"system","content":[]})", R"({"role":"system","content":""})"},
        // Fault 28
        Shape{"Reasoning",
              R"({"role":"assistant","content":"7","reasoning_content":"seven first"})",
              R"({"role":"assistant","content":"7","reasoning_content":"seven first"})"},
        Shape{
            "SdkNulls",
            R"({"role":"assistant","content":"7","name":null,"tool_calls":null,"reasoning_content":null})",
            R"({"role":"assistant","content":"7"})"}),
    [](const auto& info) { return info.param.name; });

std::string call_with(const std::string& arguments) {
  return R"({"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
         R"("function":{"name":"f")" +
         arguments + "}}]}";
}
std::string call_for_template(const std::string& arguments) {
  return R"({"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function",)"
         R"("function":{"name":"f","arguments":)" +
         arguments + "}}]}";
}

// Faults 18 and 70: arguments travel as JSON text, templates walk pairs; nothing means no pairs.
INSTANTIATE_TEST_SUITE_P(
    Arguments, MessageShape,
    testing::Values(
        Shape{"Text", call_with(R"(,"arguments":"{\"q\":\"tea\",\"a\":1}")"),
              call_for_template(R"({"q":"tea","a":1})")},
        Shape{"Object", call_with(R"(,"arguments":{"q":"tea"})"),
              call_for_template(R"({"q":"tea"})")},
        Shape{"Empty", call_with(R"(,"arguments":"")"), call_for_template("{}")},
        Shape{"Null", call_with(R"(,"arguments":null)"), call_for_template("{}")},
        Shape{"NullText", call_with(R"(,"arguments":"null")"), call_for_template("{}")},
        Shape{"Missing", call_with(""), call_for_template("{}")},
        Shape{
            "NullIds",
            R"({"role":"assistant","tool_calls":[{"id":null,"type":null,"function":{"name":"f"}}]})",
            R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]})"}),
    [](const auto& info) { return info.param.name; });

struct Refusal {
  std::string message;
  std::string param;
};
class RefusedMessage : public testing::TestWithParam<Refusal> {};
TEST_P(RefusedMessage, NamesTheMember) {
  EXPECT_EQ(refused_param([] { read(fmt::format("[{}]", GetParam().message)); }), GetParam().param);
}
INSTANTIATE_TEST_SUITE_P(
    Members, RefusedMessage,
    testing::Values(
        Refusal{"7", "messages[0]"}, Refusal{"{}", "messages[0].role"},
        Refusal{R"({"role":"robot","content":"x"})", "messages[0].role"},
        Refusal{R"({"role":7})", "messages[0].role"},
        Refusal{R"({"role":"user","content":7})", "messages[0].content"},
        Refusal{R"({"role":"user","content":["x"]})", "messages[0].content[0]"},
        Refusal{R"({"role":"user","content":[{"type":"text"}]})", "messages[0].content[0].text"},
        Refusal{R"({"role":"user","content":[{"text":"x"}]})", "messages[0].content[0].type"},
        Refusal{R"({"role":"user","tool_calls":[{"function":{"name":"f"}}]})",
                "messages[0].tool_calls"},
        Refusal{R"({"role":"assistant","tool_calls":[{}]})", "messages[0].tool_calls[0].function"},
        Refusal{R"({"role":"assistant","tool_calls":[{"function":{}}]})",
                "messages[0].tool_calls[0].function.name"},
        Refusal{R"({"role":"assistant","tool_calls":[{"type":"custom","function":{"name":"f"}}]})",
                "messages[0].tool_calls[0].type"},
        Refusal{call_with(R"(,"arguments":"{\"q\":")"),
                "messages[0].tool_calls[0].function.arguments"},
        Refusal{call_with(R"(,"arguments":"[1]")"), "messages[0].tool_calls[0].function.arguments"},
        Refusal{call_with(R"(,"arguments":7)"), "messages[0].tool_calls[0].function.arguments"}));

// Fault 85
TEST(ReadMessages, ImagePartIsRefusedByItsType) {
  try {
    read(R"([{"role":"user","content":[{"type":"text","text":"What is this?"},)"
         R"({"type":"image_url","image_url":{"url":"data:,"}}]}])");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.param(), "messages[0].content[1].type");
    EXPECT_THAT(error.what(), HasSubstr("image_url"));
  }
}

TEST(RenameDeveloperRole, LeavesTheOthers) {
  json::array messages =
      read(R"([{"role":"developer","content":"d"},{"role":"user","content":"developer"}])");
  rename_developer_role(messages);
  EXPECT_EQ(to_text(messages),
            R"([{"role":"system","content":"d"},{"role":"user","content":"developer"}])");
}

TEST(GuardStrings, ReachesEverythingThatAClientWrote) {
  json::array messages = read(
      R"([{"role":"assistant","content":"c","name":"n","reasoning_content":"r","tool_calls":[{"id":"i",)"
      R"("function":{"name":"f","arguments":"{\"k\":[\"v\",1,{\"l\":\"w\"}]}"}}]},)"
      R"({"role":"tool","content":"t","tool_call_id":"i"}])");
  guard_strings(messages, [](std::string_view text) { return fmt::format("<{}>", text); });
  EXPECT_EQ(
      to_text(messages),
      R"([{"role":"assistant","content":"<c>","name":"<n>","reasoning_content":"<r>","tool_calls":)"
      R"([{"id":"<i>","type":"function","function":{"name":"<f>","arguments":{"<k>":["<v>",1,{"<l>":"<w>"}]}}}]},)"
      R"({"role":"tool","content":"<t>","tool_call_id":"<i>"}])");
}

TEST(MarkFinalMessage, IsFoundAgainWhateverTheTextHolds) {
  json::array messages =
      read(R"([{"role":"assistant","content":"continue-here continue-here-0"}])");
  const std::string mark = mark_final_message(messages);
  const std::string content(messages[0].at("content").as_string());
  EXPECT_EQ(cut_at_mark(fmt::format("<a>{}<end>", content), mark),
            "<a>continue-here continue-here-0");
  EXPECT_EQ(refused_param([&] { cut_at_mark("<a><end>", mark); }), "continue_final_message");
}

}  // namespace
}  // namespace bodega::api
