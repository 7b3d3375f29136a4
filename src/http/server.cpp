#include "http/server.h"

#include <utility>
#include <vector>

#include "http/connection.h"
#include "http/listener.h"
#include "http/server_state.h"

namespace bodega::http {

class Server::Impl {
 public:
  Impl(const Listen& listen, const Limits& limits, Handler handler, ErrorRenderer render_error,
       HeadFilter filter)
      : state_(limits, std::move(handler), std::move(render_error), std::move(filter)),
        listener_(state_.loop.core()->io, listen),
        port_(listener_.port()) {}

  ~Impl() { stop(); }

  void start() {
    state_.loop.post(
        [this] { listener_.accept([this](Socket socket) { add(std::move(socket)); }); });
    state_.loop.start();
  }

  void stop_accepting() {
    state_.loop.post([this] {
      listener_.close();
      state_.draining = true;
      for (const auto& connection : snapshot()) connection->close_idle();
    });
  }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    state_.loop.post([this] {
      listener_.close();
      for (const auto& connection : snapshot()) connection->close();
      state_.loop.core()->io.stop();
    });
    state_.loop.join();
  }

  ServerState& state() { return state_; }
  std::uint16_t port() const { return port_; }

 private:
  using Connections = std::vector<std::shared_ptr<Connection>>;
  Connections snapshot() const { return {state_.connections.begin(), state_.connections.end()}; }

  void add(Socket socket) {
    const bool full = static_cast<int>(state_.connections.size()) >= state_.limits.connections &&
                      !close_longest_idle();
    auto connection = std::make_shared<Connection>(std::move(socket), state_);
    state_.connections.insert(connection);
    if (full) {
      connection->refuse(503, "The server has as many connections as it may have: try again soon.");
    } else {
      connection->start();
    }
  }

  // A connection in nobody's use makes room for one that is: kept alive, or silent or slow for a
  // while since it was opened.
  bool close_longest_idle() {
    const Clock::time_point now = Clock::now();
    std::shared_ptr<Connection> oldest;
    for (const auto& connection : state_.connections) {
      if (!connection->gives_way(now)) continue;
      if (!oldest || connection->idle_since() < oldest->idle_since()) oldest = connection;
    }
    if (!oldest) return false;
    oldest->close();
    return true;
  }

  ServerState state_;
  Listener listener_;
  const std::uint16_t port_;
  bool stopped_ = false;
};

Server::Server(const Listen& listen, const Limits& limits, Handler handler,
               ErrorRenderer render_error, HeadFilter filter)
    : impl_(std::make_unique<Impl>(listen, limits, std::move(handler), std::move(render_error),
                                   std::move(filter))) {}
Server::~Server() = default;

std::uint16_t Server::port() const { return impl_->port(); }
void Server::start() { impl_->start(); }
void Server::stop_accepting() { impl_->stop_accepting(); }
void Server::stop() { impl_->stop(); }
int Server::open_exchanges() const { return impl_->state().open_exchanges; }
Loop& Server::loop() { return impl_->state().loop; }

}  // namespace bodega::http
