#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_set>
#include <utility>

#include "http/loop_core.h"
#include "http/server.h"

namespace bodega::http {

class Connection;

// What the connections of one server share. Touched on the server's thread only, but the counter.
struct ServerState {
  ServerState(Limits limits, Handler handler, ErrorRenderer render_error, HeadFilter filter)
      : limits(limits),
        handler(std::move(handler)),
        render_error(std::move(render_error)),
        filter(std::move(filter)) {}

  Limits limits;
  Handler handler;
  ErrorRenderer render_error;
  HeadFilter filter;
  Loop loop;
  std::unordered_set<std::shared_ptr<Connection>> connections;
  bool draining = false;
  std::atomic<int> open_exchanges{0};
  std::array<char, 64 * kKiB> scratch{};  // one read at a time: idle connections own no buffer
};

}  // namespace bodega::http
