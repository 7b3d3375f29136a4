#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"

namespace bodega::http {

// One request, read from bytes that come in any pieces. Strict: what two parsers could read in two
// ways (length and chunks together, another transfer coding, two Hosts) is refused.
class RequestParser {
 public:
  RequestParser(std::size_t header_bytes, std::size_t body_bytes);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Takes what it can and returns how many bytes; the rest has to be offered again, in front of the
  // bytes that follow it. Takes nothing after done() or failed().
  std::size_t feed(std::string_view bytes);

  bool started() const;        // some byte of a request was seen
  bool head_complete() const;  // request() has everything but the body
  bool done() const;
  bool failed() const { return status_ != 0; }
  int failure_status() const { return status_; }  // 400, 411, 413, 417, 431
  const std::string& failure_message() const { return message_; }

  bool expects_continue() const;  // "Expect: 100-continue" and the body has not come yet
  bool keep_alive() const;        // as the client asked
  int version() const;            // 10 or 11
  Request& request();             // as far as it was read

 private:
  class Impl;
  void fail(int status, std::string message);

  std::unique_ptr<Impl> impl_;
  std::size_t header_bytes_;
  int status_ = 0;
  std::string message_;
};

}  // namespace bodega::http
