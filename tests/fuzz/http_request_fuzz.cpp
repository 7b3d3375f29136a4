// Requests from strangers, in any bytes and in any pieces: no crash, no request that depends on how
// the bytes were cut, nothing beyond the limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/request_parser.h"
#include "http/uri.h"

namespace {

using bodega::http::Request;
using bodega::http::RequestParser;

constexpr std::size_t kHeaderBytes = 512;
constexpr std::size_t kBodyBytes = 256;

void require(bool condition) {
  if (!condition) std::abort();
}

bool operator==(const Request& a, const Request& b) {
  return a.method == b.method && a.path == b.path && a.query == b.query && a.headers == b.headers &&
         a.body == b.body;
}

struct Reading {
  std::vector<Request> requests;
  bool failed = false;
};

void check_failure(const RequestParser& parser) {
  require(parser.failure_status() >= 400 && parser.failure_status() < 500);
  require(!parser.failure_message().empty());
}

// As a connection reads: what was not taken is offered again, in front of the next piece.
Reading read(std::string_view bytes, std::size_t piece) {
  Reading out;
  std::string input;
  std::optional<RequestParser> parser;
  while (!bytes.empty()) {
    input += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (!input.empty()) {
      if (!parser) parser.emplace(kHeaderBytes, kBodyBytes);
      input.erase(0, parser->feed(input));
      out.failed = parser->failed();
      if (out.failed) {
        check_failure(*parser);
        return out;
      }
      if (!parser->done()) break;
      require(parser->request().body.size() <= kBodyBytes);
      require(!parser->request().path.empty());
      out.requests.push_back(parser->request());
      parser.reset();
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t piece = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Reading whole = read(bytes, bytes.size());
  const Reading cut = read(bytes, piece);
  // Pieces may tell a failure later than the whole does, never another request.
  require(whole.requests.size() == cut.requests.size());
  for (std::size_t i = 0; i < cut.requests.size(); ++i) {
    require(whole.requests[i] == cut.requests[i]);
  }
  require(whole.failed || !cut.failed);
  bodega::http::parse_target(bytes);
  bodega::http::parse_authority(bytes);
  bodega::http::query_value(bytes, "a");
  return 0;
}
