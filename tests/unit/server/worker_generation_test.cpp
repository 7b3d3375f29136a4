#include "server/worker_generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/loop.h"
#include "worker_fakes.h"

namespace bodega::server {
namespace {

using core::FinishReason;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class GenerationTest : public testing::Test {
 protected:
  void start(bool stream, int prompts = 1) {
    api::AnswerInfo info;
    info.id = "id";
    info.stream = stream;
    info.prompts = prompts;
    info.token_bytes = [](core::TokenId) { return std::string(); };
    auto generation = std::make_shared<Generation>(model, exchange, options, stream, 1);
    generation->on_finish([this](const auto& choices) { finished = choices; });
    generation->start(api::make_completion_writer(std::move(info)),
                      std::vector<core::Request>(prompts), loop);
  }

  FakeModel model;
  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  DeliveryOptions options{1000, std::chrono::hours(1)};
  http::Loop loop;
  std::vector<std::vector<core::TokenId>> finished;
};

TEST_F(GenerationTest, EachStepLeavesInOneWrite) {
  start(true);
  EXPECT_FALSE(exchange->begun());
  model.sinks[0](say("a"));
  EXPECT_TRUE(exchange->begun());
  EXPECT_EQ(exchange->header("content-type"), "text/event-stream; charset=utf-8");
  model.sinks[0](say("b", FinishReason::kStop));
  EXPECT_EQ(exchange->writes().size(), 2U);
  EXPECT_THAT(exchange->writes()[1], HasSubstr("data: [DONE]"));
  EXPECT_TRUE(exchange->ended());
  EXPECT_THAT(finished, ElementsAre(ElementsAre('a', 'b')));
}

TEST_F(GenerationTest, WholeAnswersComeAtTheEnd) {
  start(false);
  model.sinks[0](say("a"));
  EXPECT_FALSE(exchange->ended());
  model.sinks[0](say("b", FinishReason::kStop));
  EXPECT_EQ(exchange->status(), 200);
  EXPECT_THAT(exchange->body(), HasSubstr("\"text\":\"ab\""));
}

TEST_F(GenerationTest, AFailureBeforeTheStreamHasAStatus) {
  start(true);
  core::RequestOutput output = say("", FinishReason::kError);
  output.error = "Waited too long.";
  output.error_kind = ErrorKind::kUnavailable;
  model.sinks[0](output);
  EXPECT_EQ(exchange->status(), 503);
  EXPECT_THAT(exchange->body(), HasSubstr("Waited too long."));
  EXPECT_FALSE(exchange->begun());
}

TEST_F(GenerationTest, AFailureInsideTheStreamIsAnEventAndEndsAll) {
  start(true, 2);
  model.sinks[0](say("a"));
  model.sinks[1](say("", FinishReason::kError));
  EXPECT_THAT(exchange->writes().back(), HasSubstr("data: {\"error\":{"));
  EXPECT_THAT(exchange->body(), Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(exchange->ended());
  EXPECT_THAT(model.cancelled, ElementsAre(1, 2));
  model.sinks[0](say("late"));
  EXPECT_THAT(exchange->body(), Not(HasSubstr("late")));
  EXPECT_TRUE(finished.empty());
}

TEST_F(GenerationTest, ARefusedPromptTakesTheOthersWithIt) {
  model.refuse_from = 1;
  start(true, 2);
  EXPECT_EQ(exchange->status(), 429);
  EXPECT_EQ(exchange->header("retry-after"), "3");
  EXPECT_THAT(model.cancelled, ElementsAre(1));
}

TEST_F(GenerationTest, AClientThatLeavesEndsItsRequests) {
  start(true, 2);
  exchange->leave();
  EXPECT_THAT(model.cancelled, ElementsAre(1, 2));
  model.sinks[0](say("nobody listens"));
  EXPECT_TRUE(exchange->writes().empty());
}

TEST_F(GenerationTest, AClientThatDoesNotReadRestsItsSequence) {
  start(true);
  exchange->queued = [] { return std::size_t{1001}; };
  model.sinks[0](say("a"));
  EXPECT_THAT(model.pauses, ElementsAre(Pair(1, true)));
  exchange->drain();
  EXPECT_THAT(model.pauses, ElementsAre(Pair(1, true), Pair(1, false)));
}

TEST_F(GenerationTest, ADrainBetweenLookAndPauseIsNotMissed) {
  start(true);
  int looks = 0;
  exchange->queued = [&looks] { return ++looks == 1 ? std::size_t{1001} : std::size_t{0}; };
  model.sinks[0](say("a"));
  EXPECT_THAT(model.pauses, ElementsAre(Pair(1, true), Pair(1, false)));
}

TEST_F(GenerationTest, SilenceIsFilledWithComments) {
  options.keep_alive = std::chrono::milliseconds(5);
  loop.start();
  start(true);
  ASSERT_TRUE(exchange->wait_for_writes(2));
  loop.stop();
  EXPECT_EQ(exchange->status(), 200);
  EXPECT_THAT(exchange->writes(), testing::Each(": keep-alive\n\n"));
}

}  // namespace
}  // namespace bodega::server
