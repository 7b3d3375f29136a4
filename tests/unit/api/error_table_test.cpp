#include <gtest/gtest.h>

#include "api/errors.h"
#include "api/json.h"

namespace bodega::api {
namespace {

struct Row {
  ErrorKind kind;
  int status;
  std::string code;
};

class ErrorTable : public testing::TestWithParam<Row> {};

TEST_P(ErrorTable, GivesStatusAndCode) {
  const RenderedError rendered = render_error(Error(GetParam().kind, "Change this.", "field"));
  EXPECT_EQ(rendered.status, GetParam().status);
  const json::object error = parse_object(rendered.body).at("error").as_object();
  EXPECT_EQ(error.at("message").as_string(), "Change this.");
  EXPECT_EQ(error.at("param").as_string(), "field");
  EXPECT_EQ(error.at("code").as_string(), GetParam().code);
  EXPECT_TRUE(error.at("type").is_string());
}

INSTANTIATE_TEST_SUITE_P(
    Contract, ErrorTable,
    testing::Values(Row{ErrorKind::kInvalidRequest, 400, "invalid_request"},
                    Row{ErrorKind::kContextLengthExceeded, 400, "context_length_exceeded"},
                    Row{ErrorKind::kUnauthorized, 401, "invalid_api_key"},
                    Row{ErrorKind::kForbidden, 403, "forbidden"},
                    Row{ErrorKind::kModelNotFound, 404, "model_not_found"},
                    Row{ErrorKind::kNotFound, 404, "not_found"},
                    Row{ErrorKind::kMethodNotAllowed, 405, "method_not_allowed"},
                    Row{ErrorKind::kConflict, 409, "conflict"},
                    Row{ErrorKind::kLengthRequired, 411, "length_required"},
                    Row{ErrorKind::kTooLarge, 413, "request_too_large"},
                    Row{ErrorKind::kUnsupportedMediaType, 415, "unsupported_media_type"},
                    Row{ErrorKind::kQueueFull, 429, "queue_full"},
                    Row{ErrorKind::kHeadersTooLarge, 431, "headers_too_large"},
                    Row{ErrorKind::kInternal, 500, "internal_error"},
                    Row{ErrorKind::kUnavailable, 503, "unavailable"}));

TEST(RenderError, ParamIsNullWhenThereIsNone) {
  const RenderedError rendered = render_error(Error(ErrorKind::kInternal, "x"));
  EXPECT_TRUE(parse_object(rendered.body).at("error").as_object().at("param").is_null());
}

TEST(RenderError, RetryAfterBecomesAHeader) {
  Error error(ErrorKind::kQueueFull, "Later.");
  error.retry_after_s = 7;
  const RenderedError rendered = render_error(error);
  EXPECT_EQ(rendered.headers.back(), (std::pair<std::string, std::string>{"retry-after", "7"}));
}

TEST(RenderError, BytesThatAreNotTextCannotBreakTheBody) {
  const RenderedError rendered = render_error(
      Error(ErrorKind::kInvalidRequest, "role \"\xFF\xC3\" is \"odd\"\n", "a\xED\xA0\x80"));
  const json::object error = parse_object(rendered.body).at("error").as_object();
  EXPECT_EQ(error.at("message").as_string(), "role \"\uFFFD\uFFFD\" is \"odd\"\n");
}

TEST(RenderHttpFailure, KeepsAStatusWithoutARow) {
  const RenderedError rendered = render_http_failure(408, "Too slow.");
  EXPECT_EQ(rendered.status, 408);
  EXPECT_EQ(parse_object(rendered.body).at("error").as_object().at("message").as_string(),
            "Too slow.");
}

TEST(KindOfStatus, IsTheInverseForEveryContractStatus) {
  for (const int status : {400, 401, 403, 404, 405, 409, 411, 413, 415, 429, 431, 500, 503}) {
    EXPECT_EQ(http_status(kind_of_status(status)), status);
  }
}

}  // namespace
}  // namespace bodega::api
