#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace bodega::http {

// `parameter` is what a pattern's {…} stood for, "" without one.
using RouteHandler =
    std::function<void(Request, std::shared_ptr<Exchange>, const std::string& parameter)>;

// A table of methods and paths. HEAD is served by GET's handler (the server sends no body), and one
// trailing slash is tolerated.
class Router {
 public:
  // "/v1/models", or with a parameter at the end, "/v1/models/{id}": it takes the whole rest of the
  // path, slashes included.
  void add(std::string method, std::string pattern, RouteHandler handler);

  struct Match {
    const RouteHandler* handler = nullptr;
    std::string parameter;
    // Methods of the path, "GET, HEAD, POST, OPTIONS"; "" when no route has the path (404). With a
    // path and no handler the method is wrong (405).
    std::string allow;
  };
  Match find(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string prefix;  // the pattern up to '{'
    bool parameter;
    RouteHandler handler;
  };
  static bool matches(const Route& route, std::string_view path);

  std::vector<Route> routes_;
};

}  // namespace bodega::http
