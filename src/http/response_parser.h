#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"

namespace bodega::http {

// One response, read from bytes that come in any pieces; interim (1xx) responses are skipped.
class ResponseParser {
 public:
  struct Events {
    std::function<void(int status, Headers headers)> on_head;
    std::function<void(std::string_view bytes)> on_body;
  };

  // `bodyless`: the request was HEAD.
  ResponseParser(Events events, bool bodyless);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  std::size_t feed(std::string_view bytes);  // as RequestParser::feed
  void feed_eof();                           // the peer has closed
  bool done() const;
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  class Impl;
  void restart();

  Events events_;
  bool bodyless_;
  std::unique_ptr<Impl> impl_;
  std::string failure_;
};

}  // namespace bodega::http
