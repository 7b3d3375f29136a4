#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "writer_support.h"

namespace bodega::api {
namespace {

using core::FinishReason;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<core::RequestOutput> two_pieces() {
  return {outputs({piece(0, "Hel")}), outputs({piece(0, "lo", FinishReason::kStop)}, true)};
}

TEST(ChatWriter, WholeAnswerHasTheContractsShape) {
  auto writer = make_chat_writer(info());
  const std::vector<core::RequestOutput> steps = two_pieces();
  EXPECT_EQ(writer->add(0, steps[0]), "");
  EXPECT_FALSE(writer->complete());
  const std::string body = writer->add(0, steps[1]);
  EXPECT_TRUE(writer->complete());
  EXPECT_EQ(
      body,
      R"({"id":"id-1","object":"chat.completion","created":5,"model":"m","system_fingerprint":"fp",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"logprobs":null,)"
      R"("finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
      R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0,)"
      R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"timings":{"queue_s":0.5,)"
      R"("prefill_s":2,"decode_s":4,"prefill_tokens_per_s":3,"decode_tokens_per_s":0.5}})");
}

TEST(ChatWriter, RoleComesOnceAndPiecesAddUp) {
  const std::vector<json::object> chunks = stream(make_chat_writer(streamed(info())), two_pieces());
  std::vector<std::string> deltas;
  for (const json::object& chunk : chunks) deltas.push_back(to_text(choice_of(chunk).at("delta")));
  EXPECT_THAT(deltas, ElementsAre(R"({"role":"assistant","content":""})", R"({"content":"Hel"})",
                                  R"({"content":"lo"})", "{}"));
  EXPECT_EQ(choice_of(chunks.back()).at("finish_reason").as_string(), "stop");
  EXPECT_TRUE(choice_of(chunks[1]).at("finish_reason").is_null());
}

// Fault 6: a chunk without choices exists only where usage was asked for, once, at the end.
TEST(ChatWriter, UsageChunkOnlyWhenAsked) {
  const auto empty_chunks = [](AnswerInfo asked) {
    int count = 0;
    for (const json::object& chunk : stream(make_chat_writer(std::move(asked)), two_pieces())) {
      const bool is_empty = chunk.at("choices").as_array().empty();
      count += is_empty ? 1 : 0;
      if (is_empty) {
        EXPECT_EQ(chunk.at("usage").at("completion_tokens").as_int64(), 3);
      }
    }
    return count;
  };
  AnswerInfo with_usage = streamed(info());
  with_usage.include_usage = true;
  EXPECT_EQ(empty_chunks(streamed(info())), 0);
  EXPECT_EQ(empty_chunks(with_usage), 1);
}

TEST(ChatWriter, ContinuousUsageIsInEveryChunk) {
  AnswerInfo asked = streamed(info());
  asked.continuous_usage = true;
  for (const json::object& chunk : stream(make_chat_writer(asked), two_pieces())) {
    EXPECT_TRUE(chunk.at("usage").is_object());
  }
}

TEST(ChatWriter, WarningsAreInTheFinalObjectOnly) {
  AnswerInfo asked = streamed(info());
  asked.warnings = {"Unknown field foo was not used."};
  for (const bool usage : {false, true}) {
    asked.include_usage = usage;
    const std::vector<json::object> chunks = stream(make_chat_writer(asked), two_pieces());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      EXPECT_EQ(chunks[i].contains("warnings"), i + 1 == chunks.size()) << i;
    }
  }
}

TEST(ChatWriter, StepWithoutTextSendsNothingButTheRole) {
  auto writer = make_chat_writer(streamed(info()));
  EXPECT_THAT(writer->add(0, outputs({piece(0, "")})), HasSubstr("assistant"));
  EXPECT_EQ(writer->add(0, outputs({piece(0, "")})), "");
}

TEST(ChatWriter, ChoicesEndOnTheirOwn) {
  AnswerInfo asked = streamed(info());
  asked.n = 2;
  const std::vector<json::object> chunks = stream(
      make_chat_writer(asked), {outputs({piece(0, "a"), piece(1, "b", FinishReason::kLength)}),
                                outputs({piece(0, "c", FinishReason::kStop)}, true)});
  std::string text[2];
  std::string finish[2];
  for (const json::object& chunk : chunks) {
    const json::object& choice = choice_of(chunk);
    const auto index = choice.at("index").as_int64();
    if (const json::value* content = choice.at("delta").as_object().if_contains("content")) {
      text[index] += std::string(content->as_string());
    }
    if (choice.at("finish_reason").is_string())
      finish[index] = choice.at("finish_reason").as_string();
  }
  EXPECT_THAT(text, ElementsAre("ac", "b"));
  EXPECT_THAT(finish, ElementsAre("stop", "length"));
}

// Fault 50: JSON has no minus infinity.
TEST(ChatWriter, LogprobsAreFiniteAndCarryBytes) {
  AnswerInfo asked = info();
  asked.logprobs = true;
  core::ChoiceOutput output = piece(0, "\u00e9", FinishReason::kStop);
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  output.logprobs = {{2, -0.1F, {{2, -0.1F}, {3, minus_infinity}}}};
  const std::string body = make_chat_writer(asked)->add(0, outputs({output}, true));
  EXPECT_THAT(
      body,
      HasSubstr(R"("logprobs":{"content":[{"token":")"
                "\u00e9"
                R"(","logprob":-0.1,"bytes":[195,169],"top_logprobs":[{"token":")"
                "\u00e9"
                R"(","logprob":-0.1,"bytes":[195,169]},)"
                R"({"token":"bytes:\\xc3","logprob":-9999,"bytes":[195]}]}],"refusal":null})"));
}

TEST(FailureOf, TellsOurFaultFromAWaitTooLong) {
  core::RequestOutput output = outputs({piece(0, "", FinishReason::kError)}, true);
  EXPECT_EQ(failure_of(output)->kind(), ErrorKind::kInternal);
  output.error_kind = ErrorKind::kUnavailable;
  output.error = "Waited too long.";
  EXPECT_EQ(failure_of(output)->kind(), ErrorKind::kUnavailable);
  EXPECT_EQ(failure_of(outputs({piece(0, "", FinishReason::kCancelled)}, true))->kind(),
            ErrorKind::kUnavailable);
  EXPECT_FALSE(failure_of(outputs({piece(0, "", FinishReason::kStop)}, true)));
}

TEST(NewAnswerId, IsNew) {
  EXPECT_NE(new_answer_id("chatcmpl"), new_answer_id("chatcmpl"));
  EXPECT_THAT(new_answer_id("chatcmpl"), testing::StartsWith("chatcmpl-"));
}

}  // namespace
}  // namespace bodega::api
