#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "writer_support.h"

namespace bodega::api {
namespace {

using core::FinishReason;
using testing::HasSubstr;

core::ChoiceOutput predicted(core::ChoiceOutput output) {
  output.logprobs = {{1, -0.5F, {{1, -0.5F}}}};
  return output;
}

TEST(CompletionWriter, PromptsAndChoicesAreNumberedTogether) {
  AnswerInfo asked = info();
  asked.prompts = 2;
  asked.n = 2;
  auto writer = make_completion_writer(asked);
  EXPECT_EQ(writer->add(
                1, outputs({piece(0, "c", FinishReason::kStop), piece(1, "d", FinishReason::kStop)},
                           true)),
            "");
  const json::object body = parse_object(writer->add(
      0,
      outputs({piece(0, "a", FinishReason::kStop), piece(1, "b", FinishReason::kLength)}, true)));
  std::string text;
  for (const json::value& choice : body.at("choices").as_array()) {
    EXPECT_EQ(choice.at("index").as_int64(), static_cast<int>(text.size()));
    text += std::string(choice.at("text").as_string());
  }
  EXPECT_EQ(text, "abcd");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 20);
  EXPECT_EQ(body.at("object").as_string(), "text_completion");
}

TEST(CompletionWriter, EchoPrintsThePromptAndItsLogprobs) {
  AnswerInfo asked = info();
  asked.logprobs = true;
  asked.echo = {{"Hi you", {0, 1}}};
  core::RequestOutput output = outputs({predicted(piece(0, " you", FinishReason::kStop))}, true);
  output.prompt_logprobs = {{0, 0.0F, {}}, {1, -2.5F, {{0, -0.25F}}}};
  EXPECT_THAT(
      make_completion_writer(asked)->add(0, output),
      HasSubstr(
          R"("text":"Hi you you","logprobs":{"tokens":["Hi"," you"," you"],)"
          R"("token_logprobs":[null,-2.5,-0.5],"top_logprobs":[null,{"Hi":-0.25},{" you":-0.5}],)"
          R"("text_offset":[0,2,6]},"finish_reason":"stop")"));
}

TEST(CompletionWriter, EchoAloneShowsNothingThatWasSampled) {
  AnswerInfo asked = info();
  asked.echo = {{"Hi", {0}}};
  asked.echo_only = true;
  EXPECT_THAT(
      make_completion_writer(asked)->add(0, outputs({piece(0, " you", FinishReason::kStop)}, true)),
      HasSubstr(R"("text":"Hi","logprobs":null,"finish_reason":"length")"));
}

TEST(CompletionWriter, StreamedPiecesEqualTheWhole) {
  AnswerInfo asked = info();
  asked.logprobs = true;
  asked.echo = {{"Hi", {0}}};
  const std::vector<core::RequestOutput> steps{
      outputs({predicted(piece(0, ""))}), outputs({predicted(piece(0, " you you"))}),
      outputs({piece(0, "", FinishReason::kLength)}, true)};
  std::string text;
  json::array tokens;
  json::array offsets;
  for (const json::object& chunk : stream(make_completion_writer(streamed(asked)), steps)) {
    const json::object& choice = choice_of(chunk);
    text += std::string(choice.at("text").as_string());
    for (const json::value& token : choice.at("logprobs").at("tokens").as_array())
      tokens.push_back(token);
    for (const json::value& at : choice.at("logprobs").at("text_offset").as_array())
      offsets.push_back(at);
  }
  EXPECT_EQ(text, "Hi you you");
  EXPECT_EQ(to_text(tokens), R"(["Hi"," you"," you"])");
  EXPECT_EQ(to_text(offsets), "[0,2,6]");
}

}  // namespace
}  // namespace bodega::api
