#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace bodega {

// What went wrong, in the terms of the wire contract. The HTTP status of each lives in one table,
// api/error_table.cpp; nothing below the API knows a status code.
enum class ErrorKind {
  kInvalidRequest,         // 400: the client can fix the request
  kContextLengthExceeded,  // 400
  kUnauthorized,           // 401
  kForbidden,              // 403: foreign Host or Origin
  kModelNotFound,          // 404
  kNotFound,               // 404: unknown route
  kMethodNotAllowed,       // 405
  kConflict,               // 409
  kLengthRequired,         // 411
  kTooLarge,               // 413
  kUnsupportedMediaType,   // 415
  kQueueFull,              // 429
  kHeadersTooLarge,        // 431
  kInternal,               // 500: our own bug
  kUnavailable,            // 503: no model, loading, worker restarting, no memory, wait too long
  kBadModelFile,           // load time: a file that may not be believed
  kConfig,                 // start time: flags, config file, port in use
};

// An error that ends a request or a load, never the process. `what()` is one sentence that says
// what to change; `param` is the JSON path of the offending field.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string param = {})
      : std::runtime_error(message), kind_(kind), param_(std::move(param)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& param() const { return param_; }

  // Seconds a client should wait before it tries again; only for kQueueFull and kUnavailable.
  std::optional<int> retry_after_s;

 private:
  ErrorKind kind_;
  std::string param_;
};

}  // namespace bodega
