#pragma once

#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"

namespace bodega::server {

// One finished answer, as `bodega replay` reads it.
struct LoggedAnswer {
  std::string id;
  std::string route;  // "/v1/chat/completions"
  std::string body;   // the request, as JSON without line breaks
  std::string fingerprint;
  std::uint64_t seed = 0;
  std::vector<std::vector<core::TokenId>> choices;  // output ids, prompt by prompt
};

std::string to_line(const LoggedAnswer& answer);          // one JSON object, no line break
LoggedAnswer parse_logged_answer(std::string_view line);  // throws Error(kInvalidRequest)

// Appends one line an answer to a file, off by default: it holds what people wrote. Thread-safe.
class RequestLog {
 public:
  explicit RequestLog(const std::string& path);  // throws Error(kConfig)
  void write(const LoggedAnswer& answer);

 private:
  std::mutex mutex_;  // one whole line at a time
  std::ofstream file_;
  bool failed_ = false;  // said once
};

}  // namespace bodega::server
