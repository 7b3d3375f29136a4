#include "http/uri.h"

#include <charconv>

#include "http/message.h"

namespace bodega::http {
namespace {

constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-._~%!$&'()*+,;=";

// "scheme://authority/path" -> "/path"; other forms are returned as they are.
std::string_view without_origin(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (to_lower(target.substr(0, scheme.size())) != scheme) continue;
    const auto slash = target.find_first_of("/?", scheme.size());
    return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  return target;
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 0 || port > 65535) {
    return std::nullopt;
  }
  return port;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2 || value == 0) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

std::optional<Target> parse_target(std::string_view target) {
  if (target == "*") return Target{"*", ""};
  target = without_origin(target);
  if (target.find('#') != std::string_view::npos) return std::nullopt;
  const auto question = target.find('?');
  auto path = percent_decode(target.substr(0, question));
  if (!path) return std::nullopt;
  if (path->empty() && question == 0) path->assign(1, '/');
  if (path->empty() || path->front() != '/') return std::nullopt;
  Target out{std::move(*path), ""};
  if (question != std::string_view::npos) out.query = target.substr(question + 1);
  return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find('&'));
    query.remove_prefix(item.size() == query.size() ? item.size() : item.size() + 1);
    const auto equals = item.find('=');
    if (item.substr(0, equals) != name) continue;
    if (equals == std::string_view::npos) return std::string();
    return percent_decode(item.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<Authority> parse_authority(std::string_view text) {
  Authority out;
  std::string_view rest;
  if (!text.empty() && text.front() == '[') {
    const auto bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    out.host = to_lower(text.substr(1, bracket - 1));
    rest = text.substr(bracket + 1);
    if (out.host.find_first_not_of("0123456789abcdef:.") != std::string::npos) return std::nullopt;
  } else {
    out.host = to_lower(text.substr(0, text.find(':')));
    rest = text.substr(out.host.size());
    if (out.host.find_first_not_of(kHostCharacters) != std::string::npos) return std::nullopt;
  }
  if (out.host.empty()) return std::nullopt;
  if (rest.empty()) return out;
  if (rest.front() != ':') return std::nullopt;
  if (rest.size() > 1) {
    const auto port = parse_port(rest.substr(1));
    if (!port) return std::nullopt;
    out.port = *port;
  }
  return out;
}

}  // namespace bodega::http
