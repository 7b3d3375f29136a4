#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"

namespace bodega::api {

// An error as it leaves the process: HTTP status, headers in lower case (content-type and, where
// the error carries it, retry-after) and the body {"error": {message, type, param, code}}.
struct RenderedError {
  int status = 500;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

RenderedError render_error(const Error& error);

// A failure of the HTTP layer itself (http::ErrorRenderer), which knows only a status.
RenderedError render_http_failure(int status, std::string_view message);

// The body alone, for a `data:` event of a stream that has already begun.
std::string error_body(const Error& error);

int http_status(ErrorKind kind);

// The other way round, for a client of our own wire (bodega run, the front reading a worker's
// answer).
ErrorKind kind_of_status(int status);

}  // namespace bodega::api
