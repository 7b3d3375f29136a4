#include "server/browser_policy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/errors.h"
#include "http/uri.h"

namespace bodega::server {
namespace {

constexpr std::string_view kUsualHeaders = "authorization, content-type, x-api-key, x-request-id";

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool contains(const StringList& list, const std::string& item) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
    return entry == "*" || http::to_lower(entry) == item;
  });
}

// The host of "scheme://host:port"; nothing for "null" and what has no such form.
std::optional<std::string> host_of_origin(const std::string& origin) {
  const auto mark = origin.find("://");
  if (mark == std::string::npos) return std::nullopt;
  const auto authority = http::parse_authority(std::string_view(origin).substr(mark + 3));
  if (!authority) return std::nullopt;
  return authority->host;
}

}  // namespace

bool is_loopback_name(const std::string& host) {
  constexpr std::string_view kSuffix = ".localhost";
  if (host == "localhost" || host == "::1") return true;
  if (host.size() > kSuffix.size() && host.ends_with(kSuffix)) return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 &&
         (ntohl(address.s_addr) >> 24) == IN_LOOPBACKNET;
}

BrowserPolicy::BrowserPolicy(const ServerOptions& options)
    : bound_host_(http::to_lower(options.host)),
      bound_to_all_(bound_host_ == "0.0.0.0" || bound_host_ == "::"),
      hosts_(options.allowed_hosts),
      origins_(options.cors_origins) {}

bool BrowserPolicy::host_allowed(const std::string& host) const {
  return is_loopback_name(host) || host == bound_host_ || contains(hosts_, host) ||
         (bound_to_all_ && is_address(host));
}

bool BrowserPolicy::origin_allowed(const std::string& origin) const {
  if (contains(origins_, http::to_lower(origin))) return true;
  const auto host = host_of_origin(origin);
  return host && is_loopback_name(*host);
}

void BrowserPolicy::check(const http::Request& request) const {
  const std::string host = request.header("host");
  // A client of HTTP/1.0 may leave the Host out; no browser does.
  if (!host.empty()) {
    const auto authority = http::parse_authority(host);
    if (!authority || !host_allowed(authority->host)) {
      throw Error(ErrorKind::kForbidden,
                  "This server does not answer for the Host it was asked for. Use localhost, or "
                  "start it with that name in allowed_hosts.");
    }
  }
  const std::string origin = request.header("origin");
  if (origin.empty()) return;
  if (!origin_allowed(origin)) {
    throw Error(ErrorKind::kForbidden,
                "Web pages of this Origin may not use this server. Start it with the origin in "
                "cors_origins.");
  }
  const std::string type = http::media_type(request.header("content-type"));
  if (request.method == "POST" && type != "application/json") {
    throw Error(ErrorKind::kUnsupportedMediaType,
                "A request from a web page needs the content-type application/json.");
  }
}

void BrowserPolicy::add_cors(const http::Request& request, http::Headers& headers) const {
  const std::string origin = request.header("origin");
  if (origin.empty()) return;
  headers.emplace_back("vary", "origin");
  if (!origin_allowed(origin)) return;
  headers.emplace_back("access-control-allow-origin", origin);
  headers.emplace_back("access-control-expose-headers", "retry-after, x-request-id");
}

bool BrowserPolicy::is_preflight(const http::Request& request) {
  return request.method == "OPTIONS" && !request.header("origin").empty() &&
         !request.header("access-control-request-method").empty();
}

http::Response BrowserPolicy::preflight(const http::Request& request,
                                        const std::string& allow) const {
  std::string allowed(kUsualHeaders);
  const std::string asked = request.header("access-control-request-headers");
  if (!asked.empty()) allowed += ", " + asked;  // the origin is trusted, so are its headers
  http::Response response{204, {}, {}};
  response.headers = {{"access-control-allow-methods", allow},
                      {"access-control-allow-headers", allowed},
                      {"access-control-max-age", "600"}};
  if (request.header("access-control-request-private-network") == "true") {
    response.headers.emplace_back("access-control-allow-private-network", "true");
  }
  return response;
}

}  // namespace bodega::server
