#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>

#include "http/io.h"
#include "http/server.h"

namespace bodega::http {

// The bound sockets of a server: one for each address of the host's name, or one Unix socket.
class Listener {
 public:
  // Throws Error(kConfig) when an address is in use or none can be bound.
  Listener(asio::io_context& io, const Listen& listen);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const { return port_; }  // 0 for a Unix socket
  // The loop's thread, both.
  void accept(std::function<void(Socket)> on_socket);
  void close();

 private:
  void bind_unix(const std::string& path);
  void bind_tcp(const std::string& host, std::uint16_t port);
  // False when this machine does not have the address (an IPv6 loopback without IPv6).
  bool bind_address(const asio::ip::tcp::endpoint& endpoint);
  template <class Acceptor>
  void accept_next(Acceptor& acceptor);

  asio::io_context& io_;
  Timer retry_;
  std::list<TcpAcceptor> tcp_;
  std::optional<UnixAcceptor> unix_;
  std::string unix_path_;
  std::uint16_t port_ = 0;
  std::function<void(Socket)> on_socket_;
};

}  // namespace bodega::http
