#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bodega::http {

struct Target {
  std::string path;   // decoded; "*" for the server as a whole
  std::string query;  // raw
};

// A request target in origin, absolute or asterisk form; nothing when it is malformed (a bad
// escape, a NUL, a fragment, no leading slash).
std::optional<Target> parse_target(std::string_view target);

// "%2F" -> "/"; nothing for a cut or malformed escape or an escaped NUL.
std::optional<std::string> percent_decode(std::string_view text);

// The value of `name` in a raw query, decoded; nothing when absent.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

struct Authority {
  std::string host;  // lower case, IPv6 without brackets
  int port = -1;     // -1 = not given
};

// "localhost:80", "[::1]:80", "example.org"; nothing when malformed or empty.
std::optional<Authority> parse_authority(std::string_view text);

}  // namespace bodega::http
