#include "cli/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/errors.h"
#include "http/server.h"

namespace bodega::cli {
namespace {

using testing::ElementsAre;

struct Url {
  std::string text;
  std::string host;
  int port;
  std::string prefix;
};

class ParseUrl : public testing::TestWithParam<Url> {};
TEST_P(ParseUrl, FindsTheParts) {
  const ServerAddress address = parse_url(GetParam().text);
  EXPECT_EQ(address.endpoint.host, GetParam().host);
  EXPECT_EQ(address.endpoint.port, GetParam().port);
  EXPECT_EQ(address.prefix, GetParam().prefix);
}
INSTANTIATE_TEST_SUITE_P(Urls, ParseUrl,
                         testing::Values(Url{"http://localhost:80", "localhost", 80, ""},
                                         Url{"http://a.example", "a.example", 80, ""},
                                         Url{"http://127.0.0.1:8000/", "127.0.0.1", 8000, ""},
                                         Url{"http://127.0.0.1:8000/v1", "127.0.0.1", 8000, ""},
                                         Url{"http://127.0.0.1:8000/v1/", "127.0.0.1", 8000, ""},
                                         Url{"http://[::1]:9/llm/v1", "::1", 9, "/llm"},
                                         Url{"http://[::1]", "::1", 80, ""}));

TEST(ParseUrl, RefusesWhatItCannotReach) {
  for (const char* url : {"", "localhost:80", "https://localhost", "http://", "http://:80",
                          "http://a:b", "http://a:70000", "http://a:"}) {
    EXPECT_THROW(parse_url(url), Error) << url;
  }
}

std::vector<std::string> payloads(const std::vector<std::string>& pieces) {
  EventReader reader;
  std::vector<std::string> out;
  for (const std::string& piece : pieces) {
    reader.read(piece, [&](std::string_view payload) { out.emplace_back(payload); });
  }
  return out;
}

TEST(EventReader, GivesTheSamePayloadsHoweverTheBytesAreCut) {
  const std::string stream = ": keep-alive\n\ndata: {\"a\":1}\r\n\r\ndata: two\n\ndata: [DONE]\n\n";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    EXPECT_THAT(payloads({stream.substr(0, cut), stream.substr(cut)}),
                ElementsAre("{\"a\":1}", "two", "[DONE]"))
        << cut;
  }
}

// A server whose answers a test chooses.
class ClientCalls : public testing::Test {
 protected:
  void serve(int status, const std::string& body) {
    server_ = std::make_unique<http::Server>(
        http::Listen{}, http::Limits{},
        [status, body](const http::Request&, const std::shared_ptr<http::Exchange>& exchange) {
          exchange->respond({status, {{"content-type", "application/json"}}, body});
        },
        [](int code, const std::string& message) { return http::Response{code, {}, message}; });
    server_->start();
  }
  Client client() const {
    ServerAddress address;
    address.endpoint.port = server_->port();
    return Client(address);
  }
  std::vector<std::string> stream() const {
    std::vector<std::string> texts;
    client().stream(
        "/x", {}, [&](const boost::json::object& event) { texts.push_back(serialize(event)); },
        [] { return false; });
    return texts;
  }

  std::unique_ptr<http::Server> server_;
};

TEST_F(ClientCalls, ErrorObjectsBecomeErrors) {
  serve(404, R"({"error":{"message":"No such model.","type":"x","param":null,"code":null}})");
  try {
    client().post("/v1/x", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_STREQ(error.what(), "No such model.");
  }
  EXPECT_THROW(stream(), Error);
  EXPECT_TRUE(client().is_up());
}

TEST_F(ClientCalls, StreamsEndWithTheServersLastEvent) {
  serve(200, "data: {\"a\":1}\n\n: keep-alive\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n");
  EXPECT_THAT(stream(), ElementsAre("{\"a\":1}", "{\"b\":2}"));
}

TEST_F(ClientCalls, AnErrorInsideAStreamIsThrown) {
  serve(200, "data: {\"a\":1}\n\ndata: {\"error\":{\"message\":\"Broken.\"}}\n\n");
  EXPECT_THROW(stream(), Error);
}

TEST_F(ClientCalls, NobodyThereIsUnavailable) {
  serve(200, "{}");
  Client client = this->client();
  server_.reset();
  EXPECT_FALSE(client.is_up());
  EXPECT_THROW(client.get("/health"), Error);
}

}  // namespace
}  // namespace bodega::cli
