#include "http/listener.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/log.h"

namespace bodega::http {
namespace {

constexpr std::chrono::milliseconds kRetry{50};  // when the process is out of descriptors

[[noreturn]] void refuse(const std::string& address, const ErrorCode& error) {
  if (error == asio::error::address_in_use) {
    throw Error(ErrorKind::kConfig,
                "The address " + address +
                    " is in use by another process: stop it, or choose another port.");
  }
  throw Error(ErrorKind::kConfig, "Cannot listen on " + address + ": " + error.message() + ".");
}

std::string text_of(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const bool v6 = endpoint.address().is_v6();
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

Listener::Listener(asio::io_context& io, const Listen& listen) : io_(io), retry_(io) {
  if (listen.unix_path.empty()) {
    bind_tcp(listen.host, listen.port);
  } else {
    bind_unix(listen.unix_path);
  }
}

Listener::~Listener() { close(); }

void Listener::bind_unix(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw Error(ErrorKind::kConfig, "The path of the Unix socket is too long: " + path + ".");
  }
  ErrorCode error;
  unix_.emplace(io_);
  unix_->open(asio::local::stream_protocol(), error);
  if (!error) unix_->bind(asio::local::stream_protocol::endpoint(path), error);
  if (error) refuse(path, error);
  unix_path_ = path;
  ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
  unix_->listen(asio::socket_base::max_listen_connections, error);
  if (error) refuse(path, error);
}

void Listener::bind_tcp(const std::string& host, std::uint16_t port) {
  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver(io_);
  ErrorCode error;
  const auto addresses =
      resolver.resolve(host, std::to_string(port), asio::ip::tcp::resolver::passive, error);
  if (error) refuse(host + ":" + std::to_string(port), error);
  for (const auto& entry : addresses) {
    asio::ip::tcp::endpoint endpoint = entry.endpoint();
    if (port == 0) endpoint.port(port_);  // the first address chose it
    if (bind_address(endpoint)) port_ = tcp_.front().local_endpoint().port();
  }
  if (tcp_.empty())
    refuse(host + ":" + std::to_string(port), asio::error::address_family_not_supported);
}

bool Listener::bind_address(const asio::ip::tcp::endpoint& endpoint) {
  TcpAcceptor acceptor(io_);
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return false;
  ErrorCode ignored;
  acceptor.set_option(asio::socket_base::reuse_address(true), ignored);
  if (endpoint.protocol() == asio::ip::tcp::v6())
    acceptor.set_option(asio::ip::v6_only(true), ignored);
  acceptor.bind(endpoint, error);
  const bool absent = error == boost::system::errc::address_not_available;
  for (const auto& bound : tcp_) {  // some resolvers list an address once per socket type
    if (bound.local_endpoint(ignored) == endpoint) return false;
  }
  if (absent) return false;
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) refuse(text_of(endpoint), error);
  tcp_.push_back(std::move(acceptor));
  return true;
}

void Listener::accept(std::function<void(Socket)> on_socket) {
  on_socket_ = std::move(on_socket);
  for (auto& acceptor : tcp_) accept_next(acceptor);
  if (unix_) accept_next(*unix_);
}

template <class Acceptor>
void Listener::accept_next(Acceptor& acceptor) {
  auto socket = std::make_shared<Socket>(io_);
  acceptor.async_accept(*socket, [this, &acceptor, socket](ErrorCode error) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      on_socket_(std::move(*socket));
      return accept_next(acceptor);
    }
    log_warn("A connection could not be accepted", {{"error", error.message()}});
    retry_.expires_after(kRetry);
    retry_.async_wait([this, &acceptor](ErrorCode cancelled) {
      if (!cancelled && acceptor.is_open()) accept_next(acceptor);
    });
  });
}

void Listener::close() {
  ErrorCode ignored;
  retry_.cancel();
  for (auto& acceptor : tcp_) acceptor.close(ignored);
  if (unix_) unix_->close(ignored);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

}  // namespace bodega::http
