#include "server/api_keys.h"

#include <algorithm>
#include <string>

#include "base/errors.h"

namespace bodega::server {
namespace {

std::string presented_key(const http::Request& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string authorization = request.header("authorization");
  if (http::to_lower(authorization.substr(0, kBearer.size())) == kBearer) {
    return std::string(http::trim(authorization.substr(kBearer.size())));
  }
  return request.header("x-api-key");
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  // Walks the whole presented key whatever the first difference is; only its own length shows.
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

int ApiKeys::check(const http::Request& request) const {
  if (keys_.empty()) return -1;
  const std::string key = presented_key(request);
  int found = -1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (equal_in_constant_time(key, keys_[i]) && !key.empty()) found = static_cast<int>(i);
  }
  if (found >= 0) return found;
  throw Error(ErrorKind::kUnauthorized,
              key.empty() ? "This server needs an API key: send Authorization: Bearer KEY."
                          : "The API key is not one of this server's.");
}

}  // namespace bodega::server
