#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/server.h"

namespace bodega::http {

class Connection;

// One call of an Exchange on its way to the server's thread.
struct ExchangeOp {
  enum class Kind { kRespond, kStart, kWrite, kFinish, kAbort, kAbandon, kOnClose, kOnDrain };
  Kind kind;
  Response response = {};  // kRespond, kStart (without a body)
  std::string bytes = {};
  std::function<void()> callback = {};
};

// What the handler's Exchange and the connection share. Calls pass through a mailbox, so that any
// thread may make them and those made together leave in one write.
class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  ExchangeState(std::shared_ptr<Loop::Core> loop, Connection* connection, std::size_t queued)
      : loop_(std::move(loop)), connection_(connection), queued_(queued) {}

  // Any thread.
  void submit(ExchangeOp op);
  bool closed() const { return closed_; }
  std::size_t queued() const { return queued_; }

  // The server's thread only.
  void drain();   // carries out what the mailbox holds
  void detach();  // the answer has ended
  void leave();   // the peer has gone before it ended
  void note_queued(std::size_t bytes, std::size_t limit);
  void note_written(std::size_t bytes, std::size_t limit);  // may call the drain callback

 private:
  void set_callback(ExchangeOp op);

  const std::shared_ptr<Loop::Core> loop_;  // outlives the server for a handler that comes late
  Connection* connection_;                  // null once detached
  std::function<void()> on_close_;
  std::function<void()> on_drain_;
  bool over_limit_ = false;

  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> queued_;  // in the mailbox and in the connection's queue
  std::mutex mutex_;                 // guards the two below
  std::vector<ExchangeOp> mailbox_;
  bool scheduled_ = false;
};

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<ExchangeState> state);

}  // namespace bodega::http
