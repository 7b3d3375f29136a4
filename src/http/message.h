#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bodega::http {

using Headers = std::vector<std::pair<std::string, std::string>>;  // names in lower case

// First value of a header, "" when absent.
std::string find_header(const Headers& headers, std::string_view lower_case_name);

struct Request {
  std::string method;  // "GET"
  std::string path;    // decoded, without the query
  std::string query;   // raw, without '?'
  Headers headers;
  std::string body;
  std::chrono::steady_clock::time_point received{};            // when its first byte came
  std::string header(std::string_view lower_case_name) const;  // "" when absent
};

struct Response {
  int status = 200;
  Headers headers;  // content-length and date are added
  std::string body;
};

// "text/event-stream; charset=utf-8" -> "text/event-stream"
std::string media_type(std::string_view content_type);

std::string to_lower(std::string_view text);   // ASCII letters only
std::string_view trim(std::string_view text);  // spaces and tabs

}  // namespace bodega::http
