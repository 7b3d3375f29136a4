#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bodega::http {

// A blocking socket that says exactly what a test writes, and gives up after some seconds.
class RawClient {
 public:
  // A small `receive_buffer` makes a reader that holds the server back soon.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // the server closed: what it said is still to be read
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // Reads until `mark` has come, the peer closes or time is up; returns what came, once.
  std::string read_until(std::string_view mark, int timeout_ms = 5000) {
    while (buffer_.find(mark) == std::string::npos && read_some(timeout_ms)) {
    }
    const auto at = buffer_.find(mark);
    const std::size_t count = at == std::string::npos ? buffer_.size() : at + mark.size();
    std::string out = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return out;
  }

  // One answer with a content-length: head and body.
  std::string read_answer() {
    std::string head = read_until("\r\n\r\n");
    const auto at = head.find("content-length: ");
    if (at == std::string::npos) return head;
    return head + read_count(std::stoul(head.substr(at + 16)));
  }

  std::string read_count(std::size_t count, int timeout_ms = 5000) {
    while (buffer_.size() < count && read_some(timeout_ms)) {
    }
    std::string out = buffer_.substr(0, count);
    buffer_.erase(0, out.size());
    return out;
  }

  std::string read_to_end(int timeout_ms = 5000) {
    while (read_some(timeout_ms)) {
    }
    return std::exchange(buffer_, {});
  }

  // True when the peer has closed and everything it sent was read.
  bool at_end(int timeout_ms = 5000) { return read_to_end(timeout_ms).empty() && closed_; }

  void shutdown_send() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void reset() {  // closes with RST
    const linger option{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &option, sizeof option);
    close();
  }

 private:
  bool read_some(int timeout_ms) {
    pollfd entry{fd_, POLLIN, 0};
    if (::poll(&entry, 1, timeout_ms) <= 0) return false;
    char chunk[16384];
    const ssize_t count = ::recv(fd_, chunk, sizeof chunk, 0);
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    buffer_.append(chunk, static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  bool closed_ = false;
  std::string buffer_;
};

}  // namespace bodega::http
