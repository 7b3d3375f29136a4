#include "http/exchange.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "http/connection.h"
#include "http/loop_core.h"

namespace bodega::http {

namespace {

std::size_t size_of(const ExchangeOp& op) { return op.bytes.size() + op.response.body.size(); }

}  // namespace

void ExchangeState::submit(ExchangeOp op) {
  queued_ += size_of(op);
  {
    const std::lock_guard lock(mutex_);
    mailbox_.push_back(std::move(op));
    if (std::exchange(scheduled_, true)) return;
  }
  // While the connection keeps this state alive a weak pointer is enough, and a post that never
  // runs (the server stopped) must not keep the loop alive through loop_.
  asio::post(loop_->io, [weak = weak_from_this(), late = closed_ ? shared_from_this() : nullptr] {
    if (const auto self = weak.lock()) self->drain();
  });
}

void ExchangeState::drain() {
  std::vector<ExchangeOp> ops;
  {
    const std::lock_guard lock(mutex_);
    ops.swap(mailbox_);
    scheduled_ = false;
  }
  const auto self = shared_from_this();
  Connection* flushed = nullptr;
  std::shared_ptr<Connection> keep;
  for (ExchangeOp& op : ops) {
    if (op.kind == ExchangeOp::Kind::kOnClose || op.kind == ExchangeOp::Kind::kOnDrain) {
      set_callback(std::move(op));
    } else if (connection_ != nullptr) {
      if (keep == nullptr) keep = connection_->shared_from_this();
      flushed = connection_;
      queued_ -= size_of(op);  // it comes back, framed, through note_queued()
      connection_->perform(std::move(op));
    }
  }
  if (flushed != nullptr) flushed->after_output();
}

void ExchangeState::set_callback(ExchangeOp op) {
  if (op.kind == ExchangeOp::Kind::kOnDrain) {
    if (connection_ != nullptr) on_drain_ = std::move(op.callback);
  } else if (closed_) {
    op.callback();
  } else if (connection_ != nullptr) {
    on_close_ = std::move(op.callback);
  }
}

void ExchangeState::detach() {
  connection_ = nullptr;
  on_close_ = nullptr;
  on_drain_ = nullptr;
}

void ExchangeState::leave() {
  closed_ = true;
  const auto callback = std::move(on_close_);
  detach();
  if (callback) callback();
}

void ExchangeState::note_queued(std::size_t bytes, std::size_t limit) {
  queued_ += bytes;
  over_limit_ = over_limit_ || queued_ > limit;
}

void ExchangeState::note_written(std::size_t bytes, std::size_t limit) {
  queued_ -= bytes;
  if (!over_limit_ || queued_ > limit / 2) return;
  over_limit_ = false;
  const auto callback = on_drain_;  // a copy: the call may replace it
  if (callback) callback();
}

namespace {

// The handler's end. Dropping it before the answer ended is a bug of the handler that must not
// leave the client waiting.
class ExchangeHandle final : public Exchange {
 public:
  explicit ExchangeHandle(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}
  ~ExchangeHandle() override {
    if (!ended_) submit({ExchangeOp::Kind::kAbandon});
  }
  ExchangeHandle(const ExchangeHandle&) = delete;
  ExchangeHandle& operator=(const ExchangeHandle&) = delete;

  void respond(Response response) override {
    ended_ = true;
    submit({ExchangeOp::Kind::kRespond, std::move(response)});
  }
  void start(int status, Headers headers) override {
    submit({ExchangeOp::Kind::kStart, Response{status, std::move(headers), {}}});
  }
  void write(std::string bytes) override {
    if (!bytes.empty()) submit({ExchangeOp::Kind::kWrite, {}, std::move(bytes)});
  }
  void finish() override {
    ended_ = true;
    submit({ExchangeOp::Kind::kFinish});
  }
  void abort() override {
    ended_ = true;
    submit({ExchangeOp::Kind::kAbort});
  }
  void on_close(std::function<void()> callback) override {
    state_->submit({ExchangeOp::Kind::kOnClose, {}, {}, std::move(callback)});
  }
  void on_drain(std::function<void()> callback) override {
    submit({ExchangeOp::Kind::kOnDrain, {}, {}, std::move(callback)});
  }
  bool closed() const override { return state_->closed(); }
  std::size_t queued_bytes() const override { return state_->queued(); }

 private:
  void submit(ExchangeOp op) {
    if (!state_->closed()) state_->submit(std::move(op));
  }

  const std::shared_ptr<ExchangeState> state_;
  std::atomic<bool> ended_{false};
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<ExchangeState> state) {
  return std::make_shared<ExchangeHandle>(std::move(state));
}

}  // namespace bodega::http
