#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "http/server.h"

namespace bodega::http {

inline Response plain(int status, std::string body) {
  return {status, {{"content-type", "text/plain"}}, std::move(body)};
}

inline Response plain_error(int status, const std::string& message) {
  return plain(status, message);
}

// A server on a free loopback port for one test.
struct TestServer {
  explicit TestServer(Handler handler, Limits limits = {}, HeadFilter filter = {})
      : server(Listen{}, limits, std::move(handler), plain_error, std::move(filter)) {
    server.start();
  }
  std::uint16_t port() const { return server.port(); }
  Server server;
};

// Answers "METHOD path body".
inline void echo(Request request, std::shared_ptr<Exchange> exchange) {
  exchange->respond(plain(200, request.method + " " + request.path + " " + request.body));
}

inline bool eventually(const std::function<bool()>& condition, int timeout_ms = 5000) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

}  // namespace bodega::http
