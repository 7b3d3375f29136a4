// The front's decisions without a socket: hosts, origins, keys, names, bodies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "server/api_keys.h"
#include "server/browser_policy.h"
#include "server/front_body.h"
#include "server/metrics_text.h"
#include "server/model_names.h"

namespace bodega::server {
namespace {

using testing::HasSubstr;

http::Request request(http::Headers headers, std::string method = "GET") {
  return {std::move(method), "/", "", std::move(headers), ""};
}

bool host_passes(const ServerOptions& options, const std::string& host) {
  try {
    BrowserPolicy(options).check(request({{"host", host}}));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kForbidden);
    return false;
  }
}

TEST(BrowserPolicy, AddressesCountOnlyWhereTheServerListensOnAll) {
  ServerOptions options;
  EXPECT_FALSE(host_passes(options, "192.168.1.5:80"));
  options.host = "0.0.0.0";
  EXPECT_TRUE(host_passes(options, "192.168.1.5:80"));
  EXPECT_TRUE(host_passes(options, "[fe80::1]:80"));
  EXPECT_FALSE(host_passes(options, "rebound.example"));
  options.host = "Box.lan";
  EXPECT_TRUE(host_passes(options, "box.LAN"));
  options.allowed_hosts = {"*"};
  EXPECT_TRUE(host_passes(options, "any.example"));
}

TEST(BrowserPolicy, AnyOriginWhereTheUserSaysSo) {
  ServerOptions options;
  options.cors_origins = {"*"};
  const BrowserPolicy policy(options);
  http::Headers headers;
  policy.add_cors(request({{"origin", "https://page.example"}}), headers);
  EXPECT_EQ(http::find_header(headers, "access-control-allow-origin"), "https://page.example");
}

TEST(BrowserPolicy, NoOriginNoHeaders) {
  http::Headers headers;
  BrowserPolicy(ServerOptions{}).add_cors(request({}), headers);
  EXPECT_TRUE(headers.empty());
}

TEST(ApiKeys, ComparesWhole) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  for (const char* other : {"abd", "ab", "abcd", "", "xbc", "abcabc"}) {
    EXPECT_FALSE(equal_in_constant_time("abc", other)) << other;
    EXPECT_FALSE(equal_in_constant_time(other, "abc")) << other;
  }
}

TEST(ApiKeys, TellsWhichKeyItWas) {
  const ApiKeys keys({"one", "two"});
  EXPECT_EQ(keys.check(request({{"authorization", "Bearer two"}})), 1);
  EXPECT_EQ(keys.check(request({{"x-api-key", "one"}})), 0);
  EXPECT_THROW(keys.check(request({})), Error);
  EXPECT_EQ(ApiKeys({}).check(request({})), -1);
}

TEST(FrontBody, FindsTheModel) {
  EXPECT_EQ(model_in_body(R"({"model": "a\u0062"})"), "ab");
  EXPECT_EQ(model_in_body(R"({"model": null})"), std::nullopt);
  EXPECT_EQ(model_in_body(R"({"x": {"model": "inner"}})"), std::nullopt);
  EXPECT_THROW(model_in_body(R"({"model": ["a"]})"), Error);
  EXPECT_THROW(model_in_body("[]"), Error);
}

TEST(FrontBody, AnotherNameLeavesTheRestAsItWas) {
  EXPECT_EQ(
      with_model(R"({"b":1.5,"model":"x","a":[true,null,"é"],"n":18446744073709551615})", "y"),
      R"({"b":1.5,"model":"y","a":[true,null,"é"],"n":18446744073709551615})");
}

TEST(ModelNames, AnIdComesFromThePathOrIsTheEmbeddedModels) {
  ModelOptions model;
  EXPECT_EQ(model_id_of(model), "smollm2-135m-instruct");
  model.model_path = "owner/name";
  EXPECT_EQ(model_id_of(model), "owner/name");
  model.model_id = "short";
  EXPECT_EQ(model_id_of(model), "short");
}

TEST(Metrics, FamiliesOfSeveralWorkersStandTogether) {
  const std::string one =
      "# HELP a Help.\n# TYPE a counter\na{m=\"1\"} 1\n"
      "# TYPE h histogram\nh_bucket{m=\"1\"} 2\nh_sum{m=\"1\"} 3\n";
  const std::string two =
      "# TYPE h histogram\nh_sum{m=\"2\"} 4\n# HELP a Help.\n# TYPE a counter\na{m=\"2\"} 5\n";
  EXPECT_EQ(merge_metrics({one, two, ""}),
            "# HELP a Help.\n# TYPE a counter\na{m=\"1\"} 1\na{m=\"2\"} 5\n"
            "# TYPE h histogram\nh_bucket{m=\"1\"} 2\nh_sum{m=\"1\"} 3\nh_sum{m=\"2\"} 4\n");
}

TEST(Metrics, TellWhichWorkerIsUp) {
  WorkerReport up{"a\"b", registry::WorkerState::kReady, 1, 2, 200, "", {}};
  WorkerReport down{"c", registry::WorkerState::kRestarting, 0, 3, 0, "", {}};
  const std::string text = front_metrics({up, down});
  EXPECT_THAT(text, HasSubstr("bodega_worker_up{model=\"a\\\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("bodega_worker_up{model=\"c\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("bodega_worker_restarts_total{model=\"c\"} 3\n"));
}

}  // namespace
}  // namespace bodega::server
