#pragma once

#include <string>

#include "http/message.h"
#include "server/options.h"

namespace bodega::server {

// What keeps a web page from using a server on its reader's machine: the Host has to be one of ours
// (else DNS could point a stranger's name here), a foreign Origin is refused, and a body that comes
// from a page has to be declared JSON, which makes the browser ask first.
class BrowserPolicy {
 public:
  explicit BrowserPolicy(const ServerOptions& options);

  // Throws Error: kForbidden, kUnsupportedMediaType.
  void check(const http::Request& request) const;

  // Headers that let the page read the answer, failures included; none for a foreign origin.
  void add_cors(const http::Request& request, http::Headers& headers) const;

  static bool is_preflight(const http::Request& request);
  // `allow`: the route's methods.
  http::Response preflight(const http::Request& request, const std::string& allow) const;

 private:
  bool host_allowed(const std::string& host) const;
  bool origin_allowed(const std::string& origin) const;

  std::string bound_host_;
  bool bound_to_all_;  // 0.0.0.0 or ::, where any address may be one of ours
  StringList hosts_;
  StringList origins_;
};

bool is_loopback_name(const std::string& host);  // localhost, *.localhost, 127.x.x.x, ::1

}  // namespace bodega::server
