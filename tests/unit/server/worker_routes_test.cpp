// The worker's routes with a model that a test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "server/worker_log.h"
#include "server/worker_metrics.h"
#include "server/worker_state.h"
#include "worker_fakes.h"

namespace bodega::server {
namespace {

using testing::HasSubstr;

class WorkerRoutes : public testing::Test {
 protected:
  void SetUp() override { begin({}); }

  void begin(const WorkerOptions& options) {
    state = std::make_unique<WorkerState>(options);
    state->loop = &loop;
    auto fake = std::make_unique<FakeModel>();
    model = fake.get();
    state->model = std::move(fake);
    state->ready = true;
    handler = make_worker_handler(std::make_shared<const http::Router>(make_worker_router(*state)));
  }

  std::shared_ptr<FakeExchange> send(const std::string& method, const std::string& path,
                                     const std::string& body = {}) {
    auto exchange = std::make_shared<FakeExchange>();
    http::Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    handler(std::move(request), exchange);
    return exchange;
  }

  // The answer of a route that needs no engine.
  std::shared_ptr<FakeExchange> ask(const std::string& method, const std::string& path,
                                    const std::string& body = {}) {
    auto exchange = send(method, path, body);
    EXPECT_TRUE(exchange->wait_for_end());
    return exchange;
  }

  http::Loop loop;
  std::unique_ptr<WorkerState> state;
  FakeModel* model = nullptr;
  http::Handler handler;
};

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":3})";

TEST_F(WorkerRoutes, WhileLoadingOnlyHealthSpeaks) {
  state->ready = false;
  const auto health = ask("GET", "/health");
  EXPECT_EQ(health->status(), 503);
  EXPECT_THAT(health->body(), HasSubstr(R"("status":"loading")"));
  for (const char* path : {"/v1/models", "/v1/queue/stats", "/metrics"}) {
    EXPECT_EQ(ask("GET", path)->status(), 503) << path;
  }
  const auto chat = ask("POST", "/v1/chat/completions", kChat);
  EXPECT_EQ(chat->status(), 503);
  EXPECT_EQ(chat->header("retry-after"), "1");
}

TEST_F(WorkerRoutes, HealthTellsTheTruthAboutTheLoop) {
  EXPECT_EQ(ask("GET", "/health")->status(), 200);
  model->given_stats.last_step_age_s = 1000;
  EXPECT_THAT(ask("GET", "/health")->body(), HasSubstr("stuck"));
  model->given_stats.alive = false;
  const auto dead = ask("GET", "/health");
  EXPECT_EQ(dead->status(), 503);
  EXPECT_THAT(dead->body(), HasSubstr(R"("status":"unhealthy")"));
}

TEST_F(WorkerRoutes, UnknownPathsAndWrongMethodsAreTold) {
  EXPECT_EQ(ask("GET", "/v1/nope")->status(), 404);
  const auto wrong = ask("GET", "/v1/chat/completions");
  EXPECT_EQ(wrong->status(), 405);
  EXPECT_THAT(wrong->header("allow"), HasSubstr("POST"));
}

TEST_F(WorkerRoutes, ModelIdsAreMatchedExactly) {
  EXPECT_EQ(ask("GET", "/v1/models/fake")->status(), 200);
  EXPECT_EQ(ask("GET", "/v1/models/fak")->status(), 404);
  EXPECT_THAT(ask("GET", "/v1/models")->body(), HasSubstr(R"("id":"fake")"));
}

TEST_F(WorkerRoutes, ChatGuardsMessagesAndSettlesTheRequest) {
  send("POST", "/v1/chat/completions", kChat);
  state->work.stop();
  ASSERT_EQ(model->requests.size(), 1U);
  const core::Request& request = model->requests[0];
  const std::string prompt(request.prompt.begin(), request.prompt.end());
  EXPECT_THAT(prompt, HasSubstr(R"x("content":"(Hi)")x"));
  EXPECT_EQ(request.stop.max_tokens, 3);
}

TEST_F(WorkerRoutes, UnseededRequestsGetSeedsOfTheirOwn) {
  for (int i = 0; i < 2; ++i) send("POST", "/v1/completions", R"({"prompt":"a"})");
  send("POST", "/v1/completions", R"({"prompt":"a","seed":7})");
  state->work.stop();
  ASSERT_EQ(model->requests.size(), 3U);
  std::set<std::uint64_t> seeds;
  for (const core::Request& request : model->requests) seeds.insert(request.sampling.seed);
  EXPECT_EQ(seeds.size(), 3U);
  EXPECT_TRUE(seeds.contains(7));
}

TEST_F(WorkerRoutes, ABudgetIsTheRoomLeft) {
  send("POST", "/v1/completions", R"({"prompt":"0123456789"})");
  state->work.stop();
  EXPECT_EQ(model->requests.at(0).stop.max_tokens, 90);
}

TEST_F(WorkerRoutes, PromptsWithoutTokensAndWithoutRoomAreRefused) {
  EXPECT_EQ(ask("POST", "/v1/completions", R"({"prompt":""})")->status(), 400);
  const auto full =
      ask("POST", "/v1/completions", "{\"prompt\":\"" + std::string(100, 'x') + "\"}");
  EXPECT_THAT(full->body(), HasSubstr("context_length_exceeded"));
}

TEST_F(WorkerRoutes, WhatAHandlerDidNotExpectIsOurBug) {
  model->on_encode = [] { throw std::runtime_error("secret detail"); };
  const auto answer = ask("POST", "/tokenize", R"({"prompt":"a"})");
  EXPECT_EQ(answer->status(), 500);
  EXPECT_THAT(answer->body(), testing::Not(HasSubstr("secret")));
}

// Fault 68: a text that takes long to tokenise keeps no other route waiting.
TEST_F(WorkerRoutes, SlowTokenisingHoldsNobodyUp) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  model->on_encode = [released] { released.wait(); };
  const auto slow = send("POST", "/tokenize", R"({"prompt":"a"})");
  EXPECT_EQ(ask("GET", "/health")->status(), 200);
  EXPECT_FALSE(slow->ended());
  release.set_value();
  EXPECT_TRUE(slow->wait_for_end());
  EXPECT_THAT(slow->body(), HasSubstr(R"("tokens":[97])"));
}

TEST_F(WorkerRoutes, TextRoutesShowWhatTheModelSees) {
  EXPECT_THAT(ask("POST", "/detokenize", R"({"tokens":[72,105]})")->body(),
              HasSubstr(R"("prompt":"Hi")"));
  EXPECT_EQ(ask("POST", "/detokenize", R"({"tokens":[256]})")->status(), 400);
  EXPECT_THAT(ask("POST", "/tokenize", R"({"prompt":"a","foo":1})")->body(),
              HasSubstr("Unknown field foo"));
  // People read the text without the guard's marks; the tokens have them.
  const auto shown =
      ask("POST", "/apply-template", R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_THAT(shown->body(), HasSubstr(R"(\"content\":\"Hi\")"));
}

TEST_F(WorkerRoutes, StrictRefusesUnknownFields) {
  WorkerOptions options;
  options.strict = true;
  begin(options);
  EXPECT_EQ(ask("POST", "/tokenize", R"({"prompt":"a","foo":1})")->status(), 400);
}

TEST_F(WorkerRoutes, FinishedAnswersAreLogged) {
  const std::string path = testing::TempDir() + "/requests.jsonl";
  std::filesystem::remove(path);
  WorkerOptions options;
  options.model.log_requests = path;
  begin(options);
  send("POST", "/v1/completions", "{\"prompt\":\n\"a\",\"seed\":5}");
  state->work.stop();
  model->sinks.at(0)(say("xy", core::FinishReason::kStop));
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const LoggedAnswer logged = parse_logged_answer(line);
  EXPECT_EQ(logged.route, "/v1/completions");
  EXPECT_EQ(logged.body, R"({"prompt":"a","seed":5})");
  EXPECT_EQ(logged.seed, 5U);
  EXPECT_EQ(logged.fingerprint, "fp_fake");
  EXPECT_THAT(logged.choices, testing::ElementsAre(testing::ElementsAre('x', 'y')));
}

TEST(LoggedAnswer, BrokenLinesAreRefused) {
  for (const char* line :
       {"", "{}", R"({"id":"a","route":"/","fingerprint":"f","seed":"x"})",
        R"({"id":"a","route":"/","fingerprint":"f","seed":1,"choices":[["x"]],"request":{}})"}) {
    EXPECT_THROW(parse_logged_answer(line), Error) << line;
  }
}

TEST(MetricsText, LabelsEverySampleAndEscapes) {
  engine::EngineStats stats;
  stats.running = 3;
  const std::string text = metrics_text("a\"b\\c\n", stats);
  EXPECT_THAT(text, HasSubstr("bodega_requests_running{model=\"a\\\"b\\\\c\\n\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE bodega_steps_total counter\n"));
}

}  // namespace
}  // namespace bodega::server
