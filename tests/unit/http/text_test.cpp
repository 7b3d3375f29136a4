// The pieces without sockets: router, SSE framing, targets and authorities, heads.
#include <gtest/gtest.h>

#include "http/head_writer.h"
#include "http/router.h"
#include "http/sse.h"
#include "http/uri.h"

namespace bodega::http {
namespace {

Router sample_router() {
  const auto handler = [](Request, std::shared_ptr<Exchange>, const std::string&) {};
  Router router;
  router.add("GET", "/v1/models", handler);
  router.add("GET", "/v1/models/{id}", handler);
  router.add("DELETE", "/v1/models/local/{id}", handler);
  router.add("POST", "/v1/chat/completions", handler);
  return router;
}

TEST(Router, FindsMethodAndPath) {
  const Router router = sample_router();
  EXPECT_NE(router.find("GET", "/v1/models").handler, nullptr);
  EXPECT_NE(router.find("GET", "/v1/models/").handler, nullptr);
  EXPECT_NE(router.find("HEAD", "/v1/models").handler, nullptr);
  EXPECT_EQ(router.find("GET", "/v1/models/a/b:c").parameter, "a/b:c");
  EXPECT_EQ(router.find("GET", "/v1/models/a/b/").parameter, "a/b");
}

TEST(Router, TellsAWrongMethodFromAnUnknownPath) {
  const Router router = sample_router();
  for (const char* path :
       {"/", "", "/v1", "/v1/modelsx", "/v1/chat/completions/x", "//v1/models"}) {
    const auto match = router.find("GET", path);
    EXPECT_EQ(match.handler, nullptr) << path;
    EXPECT_EQ(match.allow, "") << path;
  }
  const auto match = router.find("PUT", "/v1/models");
  EXPECT_EQ(match.handler, nullptr);
  EXPECT_EQ(match.allow, "GET, HEAD, OPTIONS");
  EXPECT_EQ(router.find("GET", "/v1/chat/completions/").allow, "POST, OPTIONS");
}

TEST(Sse, FramesAnEvent) {
  EXPECT_EQ(sse_event("{}"), "data: {}\n\n");
  EXPECT_EQ(sse_event("a\nb"), "data: a\ndata: b\n\n");
  EXPECT_EQ(sse_event("{}", "delta"), "event: delta\ndata: {}\n\n");
}

TEST(Sse, CutterGivesWholeEventsForEveryCut) {
  const std::string stream = "data: a\n\n: keep-alive\n\ndata: b\ndata: c\n\n";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    SseCutter cutter;
    const std::string first = cutter.take(stream.substr(0, cut));
    EXPECT_TRUE(first.empty() || first.substr(first.size() - 2) == "\n\n");
    EXPECT_EQ(first + cutter.take(stream.substr(cut)), stream);
    EXPECT_EQ(cutter.rest(), "");
  }
}

TEST(Uri, Targets) {
  EXPECT_EQ(parse_target("/a%2Fb?c=%20")->path, "/a/b");
  EXPECT_EQ(parse_target("/a%2Fb?c=%20")->query, "c=%20");
  EXPECT_EQ(parse_target("http://host:1/a?b")->path, "/a");
  EXPECT_EQ(parse_target("HTTP://host")->path, "/");
  EXPECT_EQ(parse_target("http://host?x=1")->path, "/");
  EXPECT_EQ(parse_target("*")->path, "*");
  for (const char* bad : {"", "a", "/%", "/%2", "/%g0", "/%00", "/a#b", "ftp://host/"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(Uri, QueryValues) {
  EXPECT_EQ(query_value("a=1&b=%2F&c", "b"), "/");
  EXPECT_EQ(query_value("a=1&b=%2F&c", "c"), "");
  EXPECT_EQ(query_value("a=1&b=%2F&c", "d"), std::nullopt);
}

TEST(Uri, Authorities) {
  EXPECT_EQ(parse_authority("LocalHost:80")->host, "localhost");
  EXPECT_EQ(parse_authority("LocalHost:80")->port, 80);
  EXPECT_EQ(parse_authority("[::1]:44468")->host, "::1");
  EXPECT_EQ(parse_authority("[::1]")->port, -1);
  for (const char* bad : {"", ":80", "a:b", "a:70000", "[::1", "[::1]x", "a b", "a/b", "u@h"}) {
    EXPECT_FALSE(parse_authority(bad)) << bad;
  }
}

TEST(Head, FramingIsDecidedByTheServerAlone) {
  Framing framing;
  framing.content_length = 3;
  const std::string head = write_head(
      204, {{"content-length", "9"}, {"transfer-encoding", "chunked"}, {"x", "y"}}, framing);
  EXPECT_NE(head.find("content-length: 3\r\n"), std::string::npos);
  EXPECT_EQ(head.find("content-length: 9"), std::string::npos);
  EXPECT_EQ(head.find("chunked"), std::string::npos);
  EXPECT_NE(head.find("x: y\r\n"), std::string::npos);
}

TEST(Head, DatesAreImfFixdates) {
  const std::string date = http_date();
  EXPECT_EQ(date.size(), 29U);
  EXPECT_EQ(date.substr(25), " GMT");
  EXPECT_EQ(date.substr(3, 2), ", ");
}

}  // namespace
}  // namespace bodega::http
