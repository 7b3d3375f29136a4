#include "http/router.h"

#include <utility>

namespace bodega::http {

void Router::add(std::string method, std::string pattern, RouteHandler handler) {
  const auto brace = pattern.find('{');
  const bool parameter = brace != std::string::npos;
  if (parameter) pattern.resize(brace);
  routes_.push_back({std::move(method), std::move(pattern), parameter, std::move(handler)});
}

bool Router::matches(const Route& route, std::string_view path) {
  if (!route.parameter) return path == route.prefix;
  return path.size() > route.prefix.size() && path.substr(0, route.prefix.size()) == route.prefix;
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  Match match;
  for (const Route& route : routes_) {
    if (!matches(route, path)) continue;
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method == "GET" ? "GET, HEAD" : route.method;
    const bool wanted = route.method == method || (route.method == "GET" && method == "HEAD");
    if (!wanted || match.handler != nullptr) continue;
    match.handler = &route.handler;
    match.parameter = path.substr(route.parameter ? route.prefix.size() : path.size());
  }
  if (!match.allow.empty()) match.allow += ", OPTIONS";
  return match;
}

}  // namespace bodega::http
