// What a server makes of the bytes it is sent: bodies, limits, refusals, keep-alive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "raw_client.h"
#include "test_server.h"

namespace bodega::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ServerRequests, AnswersAndKeepsTheConnection) {
  TestServer server(echo);
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /a%20b?q=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_answer();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("keep-alive: timeout=75\r\n"));
    EXPECT_THAT(answer, HasSubstr("date: "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a b "));
  }
}

TEST(ServerRequests, ReadsBodiesByLengthAndByChunks) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send("POST /l HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(client.read_answer(), EndsWith("POST /l hello"));
  client.send("POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: t\r\n\r\n");
  EXPECT_THAT(client.read_answer(), EndsWith("POST /c hello"));
}

TEST(ServerRequests, AByteAtATimeIsTheSame) {
  TestServer server(echo);
  RawClient client(server.port());
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
  for (const char byte : request) client.send({&byte, 1});
  EXPECT_THAT(client.read_answer(), EndsWith("POST /c hello"));
}

TEST(ServerRequests, AHeadMayBeAsLongAsItsLimit) {
  Limits limits;
  limits.header_bytes = 256 * kKiB;
  TestServer server(echo, limits);
  RawClient client(server.port());
  client.send("GET /h HTTP/1.1\r\nHost: x\r\nA: " + std::string(200000, 'a'));
  client.send("\r\nB: b\r\n\r\n");
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 200"));
}

TEST(ServerRequests, ContinuesOnlyWhereABodyIsAwaited) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send(
      "POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2048\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n", 500), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(std::string(2048, 'b'));
  EXPECT_THAT(client.read_answer(), EndsWith(std::string(2048, 'b')));
  // The body is there already: no interim answer.
  client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 200"));
}

TEST(ServerRequests, ATooLongBodyIsRefusedInsteadOfContinued) {
  Limits limits;
  limits.body_bytes = 1000;
  TestServer server(echo, limits);
  RawClient client(server.port());
  client.send(
      "POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 413"));
  EXPECT_TRUE(client.at_end());
}

// A client that writes its whole body before it reads must still get to read the answer.
TEST(ServerRequests, ARefusedBodyDoesNotTakeTheAnswerAway) {
  Limits limits;
  limits.body_bytes = 1000;
  TestServer server(echo, limits);
  for (const std::string head :
       {"Content-Length: 8000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n7a1200\r\n"}) {
    RawClient client(server.port());
    client.send("POST /e HTTP/1.1\r\nHost: x\r\n" + head);
    client.send(std::string(8000000, 'b'));
    const std::string answer = client.read_answer();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 Content Too Large"));
    EXPECT_THAT(answer, HasSubstr("connection: close"));
  }
}

TEST(ServerRequests, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server([](Request request, std::shared_ptr<Exchange> exchange) {
    if (request.path != "/slow") return echo(std::move(request), std::move(exchange));
    std::thread([exchange] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      exchange->respond(plain(200, "slow"));
    }).detach();
  });
  RawClient client(server.port());
  client.send(
      "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nB"
      "GET /three HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_answer(), EndsWith("slow"));
  EXPECT_THAT(client.read_answer(), EndsWith("POST /two B"));
  EXPECT_THAT(client.read_answer(), EndsWith("GET /three "));
}

TEST(ServerRequests, HeadHasTheHeadersOfGetAndNoBody) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\nGET /h HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("content-length: 8\r\n"));
  EXPECT_THAT(client.read_answer(), EndsWith("GET /h "));
}

TEST(ServerRequests, OldClientsAreClosedUnlessTheyAsk) {
  TestServer server(echo);
  RawClient old(server.port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.read_to_end(), HasSubstr("connection: close"));
  RawClient kept(server.port());
  kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(kept.read_answer(), HasSubstr("connection: keep-alive"));
  kept.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(kept.read_to_end(), StartsWith("HTTP/1.1 200"));
}

TEST(ServerRequests, CloseIsHonoured) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), HasSubstr("connection: close"));
}

struct BadRequest {
  const char* name;
  std::string bytes;
  int status;
};

class BadRequests : public testing::TestWithParam<BadRequest> {};

TEST_P(BadRequests, AreAnsweredAndClosedAndOthersServed) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send(GetParam().bytes);
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 " + std::to_string(GetParam().status)));
  EXPECT_TRUE(client.at_end());
  RawClient other(server.port());
  other.send("GET /fine HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(other.read_answer(), EndsWith("GET /fine "));
}

const std::string kPost = "POST / HTTP/1.1\r\nHost: x\r\n";

INSTANTIATE_TEST_SUITE_P(
    , BadRequests,
    testing::Values(
        BadRequest{"NotHttp", "hello there\r\n\r\n", 400},
        BadRequest{"Tls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
        BadRequest{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
        BadRequest{"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        BadRequest{"HTTP2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        BadRequest{"NoLength", kPost + "\r\n", 411},
        BadRequest{"LengthAndChunks",
                   kPost + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        BadRequest{"ChunksAndLength",
                   kPost + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
        BadRequest{"TwoLengths", kPost + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
        BadRequest{"NegativeLength", kPost + "Content-Length: -3\r\n\r\n", 400},
        BadRequest{"HugeLength", kPost + "Content-Length: 99999999999999999999\r\n\r\n", 400},
        BadRequest{"LongLength", kPost + "Content-Length: 9999999999\r\n\r\n", 413},
        BadRequest{"OtherCoding", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
        BadRequest{"BadChunk", kPost + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        BadRequest{"ChunkOverrun", kPost + "Transfer-Encoding: chunked\r\n\r\n1\r\nabcd\r\n", 400},
        BadRequest{"LongChunkHead",
                   kPost + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(40000, 'x'), 431},
        BadRequest{"SpaceInName", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        BadRequest{"BareNewline", "GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", 400},
        BadRequest{"NulInTarget", "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        BadRequest{"BadEscape", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        BadRequest{"NoSlash", "GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        BadRequest{"OddExpectation", kPost + "Expect: tea\r\nContent-Length: 1\r\n\r\n", 417},
        BadRequest{"LongHeader", "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20000, 'a'), 431},
        BadRequest{"LongTarget", "GET /" + std::string(20000, 'a'), 431}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ServerRequests, AHandlerThatForgetsOrThrowsAnswers500) {
  TestServer server([](Request request, std::shared_ptr<Exchange> exchange) {
    if (request.path == "/throw") throw std::runtime_error("oops");
    if (request.path == "/late") exchange->start(200, {});
  });
  RawClient client(server.port());
  client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 500"));
  client.send("GET /forget HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 500"));
  client.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), Not(HasSubstr("0\r\n\r\n")));  // cut, not ended
}

TEST(ServerRequests, TheFilterSeesEveryAnswer) {
  TestServer server(echo, {}, [](const Request& request, int status, Headers& headers) {
    headers.emplace_back("x-seen", request.header("origin") + " " + std::to_string(status));
  });
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nOrigin: o\r\n\r\n");
  EXPECT_THAT(client.read_answer(), HasSubstr("x-seen: o 200\r\n"));
  client.send("POST / HTTP/1.1\r\nHost: x\r\nOrigin: o\r\n\r\n");
  EXPECT_THAT(client.read_answer(), HasSubstr("x-seen: o 411\r\n"));
}

TEST(ServerRequests, AHeaderValueCannotAddAHeader) {
  TestServer server([](Request, std::shared_ptr<Exchange> exchange) {
    exchange->respond({200, {{"x-name", "a\r\nx-evil: 1"}}, ""});
  });
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_answer(), HasSubstr("x-name: a  x-evil: 1\r\n"));
}

}  // namespace
}  // namespace bodega::http
