#include "http/output_queue.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <utility>

namespace bodega::http {

void OutputQueue::push(std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
}

void OutputQueue::flush(const std::shared_ptr<void>& owner, Progress progress) {
  if (writing_ || pieces_.empty()) return;
  writing_ = true;
  std::array<asio::const_buffer, 16> gather;
  const std::size_t count = std::min(gather.size(), pieces_.size());
  for (std::size_t i = 0; i < count; ++i) gather.at(i) = asio::buffer(pieces_[i]);
  gather[0] += front_offset_;
  socket_.async_write_some(gather, [this, owner, progress = std::move(progress)](
                                       ErrorCode error, std::size_t written) mutable {
    writing_ = false;
    consume(written);
    progress(error, written);
    if (!error && socket_.is_open()) flush(owner, std::move(progress));
  });
}

void OutputQueue::consume(std::size_t count) {
  bytes_ -= count;
  while (count > 0) {
    const std::size_t rest = pieces_.front().size() - front_offset_;
    if (count < rest) {
      front_offset_ += count;
      return;
    }
    count -= rest;
    front_offset_ = 0;
    pieces_.pop_front();
  }
}

}  // namespace bodega::http
