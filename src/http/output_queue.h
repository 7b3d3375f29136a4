#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "http/io.h"

namespace bodega::http {

// Bytes on their way to a socket. What is queued together leaves in one write.
class OutputQueue {
 public:
  // `written` may be 0 with an error; called after each write.
  using Progress = std::function<void(ErrorCode error, std::size_t written)>;

  explicit OutputQueue(Socket& socket) : socket_(socket) {}

  void push(std::string bytes);
  std::size_t size() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

  // Starts to write unless it already does. `owner` keeps this object alive while a write runs.
  void flush(const std::shared_ptr<void>& owner, Progress progress);

 private:
  void consume(std::size_t count);

  Socket& socket_;
  std::deque<std::string> pieces_;
  std::size_t front_offset_ = 0;  // of pieces_.front(), already written
  std::size_t bytes_ = 0;
  bool writing_ = false;
};

}  // namespace bodega::http
