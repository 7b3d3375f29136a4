#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "test_server.h"

namespace bodega::http {
namespace {

using testing::HasSubstr;

// Collects what happens to one call.
struct Outcome {
  std::mutex mutex;
  int status = 0;
  std::string type;
  std::string body;
  std::string error;
  std::atomic<bool> ended{false};

  ClientEvents events() {
    return {[this](int code, Headers headers) {
              const std::lock_guard lock(mutex);
              status = code;
              type = find_header(headers, "content-type");
            },
            [this](std::string_view bytes) {
              const std::lock_guard lock(mutex);
              body += bytes;
            },
            [this] { ended = true; },
            [this](const std::string& reason) {
              error = reason;
              ended = true;
            }};
  }
  std::size_t received() {
    const std::lock_guard lock(mutex);
    return body.size();
  }
};

class Clients : public testing::TestWithParam<bool> {
 protected:
  // A Unix socket or a TCP server, and how to reach it.
  void serve(Handler handler, Limits limits = {}) {
    Listen listen;
    if (GetParam()) listen.unix_path = "/tmp/bodega_client_test_" + std::to_string(getpid());
    server = std::make_unique<Server>(listen, limits, std::move(handler), plain_error);
    server->start();
    endpoint = {listen.unix_path, "localhost", server->port()};
    loop.start();
  }
  std::shared_ptr<ClientCall> send(ClientRequest request, Outcome& outcome) {
    std::atomic<bool> sent{false};
    std::shared_ptr<ClientCall> call;
    loop.post([&] {
      call = send_request(loop, endpoint, std::move(request), outcome.events());
      sent = true;
    });
    eventually([&] { return sent.load(); });
    return call;
  }

  std::unique_ptr<Server> server;
  Endpoint endpoint;
  Loop loop;
};

TEST_P(Clients, SendABodyAndReadTheAnswer) {
  serve(echo);
  Outcome outcome;
  const std::string body(3 << 20, 'b');
  send({"POST", "/a%20b", {{"x", "y"}}, body}, outcome);
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.type, "text/plain");
  EXPECT_EQ(outcome.body, "POST /a b " + body);
}

TEST_P(Clients, ReadChunksAsTheyCome) {
  std::atomic<bool> go{false};
  serve([&](Request, std::shared_ptr<Exchange> exchange) {
    exchange->start(200, {});
    exchange->write("one");
    std::thread([&go, exchange] {
      eventually([&] { return go.load(); });
      exchange->write("two");
      exchange->finish();
    }).detach();
  });
  Outcome outcome;
  send({}, outcome);
  ASSERT_TRUE(eventually([&] { return outcome.received() == 3; }));
  EXPECT_FALSE(outcome.ended);
  go = true;
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_EQ(outcome.body, "onetwo");
}

TEST_P(Clients, TellAnAnswerThatWasCut) {
  serve([](Request, std::shared_ptr<Exchange> exchange) {
    exchange->start(200, {});
    exchange->write("one");
    exchange->abort();
  });
  Outcome outcome;
  send({}, outcome);
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_NE(outcome.error, "");
}

TEST_P(Clients, TellThatNobodyListens) {
  serve(echo);
  server->stop();
  server.reset();
  Outcome outcome;
  send({}, outcome);
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_NE(outcome.error, "");
}

TEST_P(Clients, GiveUpAfterTheTimeout) {
  std::shared_ptr<Exchange> held;
  serve([&](Request, std::shared_ptr<Exchange> exchange) { held = std::move(exchange); });
  Outcome outcome;
  ClientRequest request;
  request.timeout = std::chrono::milliseconds(50);
  send(std::move(request), outcome);
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_THAT(outcome.error, HasSubstr("too long"));
  server->stop();
}

TEST_P(Clients, CancelIsSeenByTheServerAtOnce) {
  std::atomic<bool> asked{false};
  std::atomic<bool> left{false};
  std::shared_ptr<Exchange> held;
  serve([&](Request, std::shared_ptr<Exchange> exchange) {
    exchange->on_close([&] { left = true; });
    held = std::move(exchange);
    asked = true;
  });
  Outcome outcome;
  const auto call = send({}, outcome);
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  loop.post([&] { call->cancel(); });
  EXPECT_TRUE(eventually([&] { return left.load(); }, 500));
  EXPECT_FALSE(outcome.ended);
  server->stop();
}

TEST_P(Clients, APausedCallHoldsTheServerBack) {
  std::shared_ptr<Exchange> held;
  std::atomic<bool> ready{false};
  serve([&](Request, std::shared_ptr<Exchange> exchange) {
    exchange->start(200, {});
    held = std::move(exchange);
    ready = true;
  });
  Outcome outcome;
  const auto call = send({}, outcome);
  ASSERT_TRUE(eventually([&] { return ready.load(); }));
  loop.post([&] { call->pause(true); });
  constexpr std::size_t kBytes = 32 << 20;
  held->write(std::string(kBytes, 'x'));
  held->finish();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(outcome.received(), kBytes / 4);
  loop.post([&] { call->pause(false); });
  ASSERT_TRUE(eventually([&] { return outcome.ended.load(); }));
  EXPECT_EQ(outcome.received(), kBytes);
}

INSTANTIATE_TEST_SUITE_P(, Clients, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Unix" : "Tcp"); });

}  // namespace
}  // namespace bodega::http
