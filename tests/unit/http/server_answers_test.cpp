// Answers in pieces, clients that read slowly or leave, deadlines, the end of a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "base/errors.h"
#include "raw_client.h"
#include "test_server.h"

namespace bodega::http {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

const std::string kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

// Hands the exchange of each request to the test.
struct Held {
  Handler handler() {
    return [this](Request, std::shared_ptr<Exchange> exchange) {
      exchange->on_close([this] {
        left_at = Clock::now();
        ++left;
      });
      const std::lock_guard lock(mutex);
      last = std::move(exchange);
    };
  }
  std::shared_ptr<Exchange> wait() {
    eventually([this] {
      const std::lock_guard lock(mutex);
      return last != nullptr;
    });
    const std::lock_guard lock(mutex);
    return last;
  }

  void forget() {
    const std::lock_guard lock(mutex);
    last = nullptr;
  }

  std::mutex mutex;
  std::shared_ptr<Exchange> last;
  std::atomic<int> left{0};
  std::atomic<Clock::time_point> left_at{};
};

TEST(ServerAnswers, PiecesAreChunksInOrder) {
  Held held;
  TestServer server(held.handler());
  RawClient client(server.port());
  client.send(kGet);
  const auto exchange = held.wait();
  exchange->start(200, {{"content-type", "text/event-stream"}});
  exchange->write("one");
  exchange->write(std::string(17, 'x'));
  exchange->finish();
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("transfer-encoding: chunked"));
  EXPECT_EQ(client.read_until("0\r\n\r\n"),
            "3\r\none\r\n11\r\n" + std::string(17, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(held.left, 0);
  held.forget();
  client.send(kGet);  // the connection is clean
  held.wait()->respond(plain(200, "again"));
  EXPECT_THAT(client.read_answer(), EndsWith("again"));
}

TEST(ServerAnswers, ADeclaredLengthIsKept) {
  Held held;
  TestServer server(held.handler());
  RawClient client(server.port());
  client.send(kGet);
  const auto exchange = held.wait();
  exchange->start(200, {{"content-length", "6"}});
  exchange->write("abc");
  exchange->write("def");
  exchange->finish();
  EXPECT_THAT(client.read_answer(), EndsWith("content-length: 6\r\n\r\nabcdef"));
}

TEST(ServerAnswers, OldClientsGetPiecesWithoutChunks) {
  Held held;
  TestServer server(held.handler());
  RawClient client(server.port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = held.wait();
  exchange->start(200, {});
  exchange->write("abc");
  exchange->finish();
  EXPECT_THAT(client.read_to_end(), EndsWith("connection: close\r\n\r\nabc"));
}

TEST(ServerAnswers, WritesFromManyThreadsKeepEachThreadsOrder) {
  Held held;
  TestServer server(held.handler());
  RawClient client(server.port());
  client.send(kGet);
  const auto exchange = held.wait();
  exchange->start(200, {});
  std::vector<std::thread> writers;
  for (char name = 'a'; name < 'e'; ++name) {
    writers.emplace_back([&exchange, name] {
      for (int i = 0; i < 500; ++i) exchange->write(name + std::to_string(i) + ".");
    });
  }
  for (auto& writer : writers) writer.join();
  exchange->finish();
  const std::string body = client.read_until("0\r\n\r\n");
  for (char name = 'a'; name < 'e'; ++name) {
    std::size_t at = 0;
    for (int i = 0; i < 500; ++i) {
      at = body.find("\r\n" + (name + std::to_string(i)) + ".", at);
      ASSERT_NE(at, std::string::npos) << name << i;
    }
  }
}

class Leavers : public testing::TestWithParam<bool> {};

TEST_P(Leavers, AreNoticedWithinMilliseconds) {
  const bool streaming = GetParam();
  for (const bool by_reset : {false, true}) {
    Held held;
    TestServer server(held.handler());
    RawClient client(server.port());
    client.send(kGet);
    const auto exchange = held.wait();
    if (streaming) {
      exchange->start(200, {});
      exchange->write("one");
      client.read_until("one");
    }
    const auto leaves_at = Clock::now();
    by_reset ? client.reset() : client.close();
    ASSERT_TRUE(eventually([&] { return held.left == 1; }));
    EXPECT_LT(held.left_at.load() - leaves_at, milliseconds(500));  // two loaded cores
    EXPECT_TRUE(exchange->closed());
    EXPECT_EQ(server.server.open_exchanges(), 0);
    std::atomic<bool> told{false};
    exchange->on_close([&] { told = true; });  // too late: told at once
    EXPECT_TRUE(eventually([&] { return told.load(); }));
    exchange->write("nobody");
    exchange->finish();
  }
}

INSTANTIATE_TEST_SUITE_P(, Leavers, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "WhileStreaming" : "WhileWaiting");
});

TEST(ServerAnswers, ALeaverIsNoticedBehindPipelinedBytes) {
  Held held;
  TestServer server(held.handler());
  RawClient client(server.port());
  client.send(kGet + kGet + kGet);
  held.wait();
  client.close();
  EXPECT_TRUE(eventually([&] { return held.left == 1; }));
}

TEST(ServerAnswers, AnAnswerMadeAtOnceReachesAHalfClosedClient) {
  TestServer server(echo);
  for (int i = 0; i < 20; ++i) {
    RawClient client(server.port());
    client.send(kGet);
    client.shutdown_send();
    EXPECT_THAT(client.read_to_end(), EndsWith("GET / "));
  }
}

TEST(ServerAnswers, ASlowReaderFillsTheQueueAndDrainsIt) {
  Limits limits;
  limits.output_bytes = 64 * 1024;
  Held held;
  TestServer server(held.handler(), limits);
  RawClient client(server.port(), 4096);
  client.send(kGet);
  const auto exchange = held.wait();
  std::atomic<int> drained{0};
  exchange->on_drain([&] { ++drained; });
  exchange->start(200, {});
  std::size_t written = 0;
  while (exchange->queued_bytes() <= limits.output_bytes && written < (64U << 20)) {
    exchange->write(std::string(8192, 'x'));
    written += 8192;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  ASSERT_LT(written, 64U << 20) << "the queue never filled";
  EXPECT_EQ(drained, 0);
  std::thread reader([&] { client.read_until("\r\n0\r\n\r\n"); });
  EXPECT_TRUE(eventually([&] { return drained == 1; }));
  exchange->finish();
  reader.join();
  EXPECT_TRUE(eventually([&] { return server.server.open_exchanges() == 0; }));
}

TEST(ServerAnswers, AReaderWithoutProgressIsCutAfterTheTimeout) {
  Limits limits;
  limits.write_timeout = std::chrono::seconds(2);
  Held held;
  TestServer server(held.handler(), limits);
  RawClient client(server.port(), 4096);
  client.send(kGet);
  const auto exchange = held.wait();
  exchange->start(200, {});
  exchange->write(std::string(32 << 20, 'x'));
  EXPECT_FALSE(eventually([&] { return held.left == 1; }, 500));
  EXPECT_TRUE(eventually([&] { return held.left == 1; }));
  held.forget();
  RawClient other(server.port());  // and nobody else is
  other.send(kGet);
  held.wait()->respond(plain(200, "fine"));
  EXPECT_THAT(other.read_answer(), EndsWith("fine"));
}

TEST(ServerAnswers, ARequestThatTricklesMeetsTheDeadline) {
  Limits limits;
  limits.read_deadline = std::chrono::seconds(1);
  TestServer server(echo, limits);
  RawClient client(server.port());
  RawClient silent(server.port());
  client.send("GET / HT");
  std::this_thread::sleep_for(milliseconds(600));
  client.send("TP/1.1\r\n");
  const auto from = Clock::now();
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408"));
  EXPECT_LT(Clock::now() - from, milliseconds(1500));
  EXPECT_TRUE(silent.at_end());
}

TEST(ServerAnswers, AnIdleConnectionIsClosedAfterItsTime) {
  Limits limits;
  limits.idle_timeout = std::chrono::seconds(1);
  TestServer server(echo, limits);
  RawClient client(server.port());
  client.send(kGet);
  EXPECT_THAT(client.read_answer(), HasSubstr("keep-alive: timeout=1\r\n"));
  EXPECT_TRUE(client.at_end());
}

TEST(ServerAnswers, BeyondTheCapIdleConnectionsMakeRoom) {
  Limits limits;
  limits.connections = 2;
  TestServer server(echo, limits);
  RawClient idle(server.port());
  idle.send(kGet);
  idle.read_answer();
  RawClient busy(server.port());
  busy.send("GET / HT");
  std::this_thread::sleep_for(milliseconds(50));
  RawClient third(server.port());
  third.send("GET / HT");
  EXPECT_TRUE(idle.at_end());
  RawClient fourth(server.port());  // nobody is idle now
  EXPECT_THAT(fourth.read_to_end(), StartsWith("HTTP/1.1 503"));
  third.send("TP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(third.read_answer(), StartsWith("HTTP/1.1 200"));
}

TEST(ServerAnswers, DrainingEndsIdleConnectionsAndKeepsRunningAnswers) {
  Held held;
  TestServer server(held.handler());
  RawClient idle(server.port());
  RawClient busy(server.port());
  busy.send(kGet);
  const auto exchange = held.wait();
  exchange->start(200, {});
  exchange->write("one");
  busy.read_until("one");
  server.server.stop_accepting();
  EXPECT_TRUE(idle.at_end());
  EXPECT_THROW(RawClient(server.port()), std::runtime_error);
  exchange->write("two");
  exchange->finish();
  EXPECT_THAT(busy.read_to_end(), EndsWith("two\r\n0\r\n\r\n"));
  EXPECT_EQ(server.server.open_exchanges(), 0);
}

TEST(ServerAnswers, StoppingTellsTheHandlersAndLateCallsAreHarmless) {
  Held held;
  std::shared_ptr<Exchange> exchange;
  {
    TestServer server(held.handler());
    RawClient client(server.port());
    client.send(kGet);
    exchange = held.wait();
    server.server.stop();
    EXPECT_EQ(held.left, 1);
    EXPECT_TRUE(client.at_end());
  }
  exchange->write("late");
  exchange->finish();
}

TEST(ServerListen, ABusyPortIsRefusedWithTheReason) {
  TestServer first(echo);
  try {
    Server second(Listen{"127.0.0.1", first.port(), ""}, {}, echo, plain_error);
    FAIL() << "bound twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("in use"));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(first.port())));
  }
}

TEST(ServerListen, LocalhostWorksWithAndWithoutIpv6) {
  Server server(Listen{"localhost", 0, ""}, {}, echo, plain_error);
  server.start();
  RawClient client(server.port());
  client.send(kGet);
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 200"));
}

TEST(ServerListen, AnAddressThatIsNotOursIsRefused) {
  EXPECT_THROW(Server(Listen{"192.0.2.1", 0, ""}, {}, echo, plain_error), Error);
  EXPECT_THROW(Server(Listen{"no.such.host.invalid", 0, ""}, {}, echo, plain_error), Error);
}

}  // namespace
}  // namespace bodega::http
