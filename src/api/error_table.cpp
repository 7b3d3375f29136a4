#include <array>
#include <optional>

#include "api/errors.h"
#include "api/json.h"
#include "base/utf8.h"

namespace bodega::api {
namespace {

struct Row {
  ErrorKind kind;
  int status;
  const char* type;
  const char* code;
};

// The one place where an error meets the wire. Types follow OpenAI's SDKs, which pick their
// exception by status and show `code`. The first row of a status is the one that a bare status
// stands for.
constexpr auto kRows = std::to_array<Row>({
    {ErrorKind::kInvalidRequest, 400, "invalid_request_error", "invalid_request"},
    {ErrorKind::kContextLengthExceeded, 400, "invalid_request_error", "context_length_exceeded"},
    {ErrorKind::kUnauthorized, 401, "authentication_error", "invalid_api_key"},
    {ErrorKind::kForbidden, 403, "permission_error", "forbidden"},
    {ErrorKind::kNotFound, 404, "invalid_request_error", "not_found"},
    {ErrorKind::kModelNotFound, 404, "invalid_request_error", "model_not_found"},
    {ErrorKind::kMethodNotAllowed, 405, "invalid_request_error", "method_not_allowed"},
    {ErrorKind::kConflict, 409, "invalid_request_error", "conflict"},
    {ErrorKind::kLengthRequired, 411, "invalid_request_error", "length_required"},
    {ErrorKind::kTooLarge, 413, "invalid_request_error", "request_too_large"},
    {ErrorKind::kUnsupportedMediaType, 415, "invalid_request_error", "unsupported_media_type"},
    {ErrorKind::kQueueFull, 429, "rate_limit_error", "queue_full"},
    {ErrorKind::kHeadersTooLarge, 431, "invalid_request_error", "headers_too_large"},
    {ErrorKind::kInternal, 500, "server_error", "internal_error"},
    {ErrorKind::kUnavailable, 503, "server_error", "unavailable"},
    {ErrorKind::kBadModelFile, 400, "invalid_request_error", "bad_model_file"},
    {ErrorKind::kConfig, 400, "invalid_request_error", "bad_configuration"},
});

const Row& row_of(ErrorKind kind) {
  for (const Row& row : kRows) {
    if (row.kind == kind) return row;
  }
  return row_of(ErrorKind::kInternal);
}

std::string body_of(const Row& row, std::string_view message, std::string_view param) {
  json::object inner;
  inner["message"] = replace_invalid_utf8(message);
  inner["type"] = row.type;
  inner["param"] = param.empty() ? json::value(nullptr) : json::value(replace_invalid_utf8(param));
  inner["code"] = row.code;
  return to_text(json::object{{"error", std::move(inner)}});
}

}  // namespace

int http_status(ErrorKind kind) { return row_of(kind).status; }

ErrorKind kind_of_status(int status) {
  for (const Row& row : kRows) {
    if (row.status == status) return row.kind;
  }
  return status >= 500 ? ErrorKind::kInternal : ErrorKind::kInvalidRequest;
}

std::string error_body(const Error& error) {
  return body_of(row_of(error.kind()), error.what(), error.param());
}

RenderedError render_error(const Error& error) {
  RenderedError rendered{http_status(error.kind()), {{"content-type", "application/json"}}, {}};
  if (error.retry_after_s) {
    rendered.headers.emplace_back("retry-after", std::to_string(*error.retry_after_s));
  }
  rendered.body = error_body(error);
  return rendered;
}

RenderedError render_http_failure(int status, std::string_view message) {
  RenderedError rendered = render_error(Error(kind_of_status(status), std::string(message)));
  rendered.status = status;  // also one without a row of its own, such as 408
  return rendered;
}

}  // namespace bodega::api
