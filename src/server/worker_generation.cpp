#include "server/worker_generation.h"

#include <utility>

#include "api/errors.h"
#include "http/sse.h"

namespace bodega::server {

Generation::Generation(WorkerModel& model, std::shared_ptr<http::Exchange> exchange,
                       DeliveryOptions options, bool stream, int n)
    : model_(model), exchange_(std::move(exchange)), options_(options), stream_(stream), n_(n) {}

void Generation::start(std::unique_ptr<api::AnswerWriter> writer,
                       std::vector<core::Request> requests, http::Loop& loop) {
  writer_ = std::move(writer);
  tokens_.resize(requests.size() * n_);
  for (std::size_t prompt = 0; prompt < requests.size(); ++prompt) {
    core::RequestId id = 0;
    try {
      id = model_.submit(std::move(requests[prompt]),
                         [self = shared_from_this(), prompt](const core::RequestOutput& output) {
                           self->deliver(static_cast<int>(prompt), output);
                         });
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      fail(error);
      return;
    }
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }
  exchange_->on_drain([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    for (const core::RequestId id : self->ids()) self->model_.pause(id, false);
  });
  exchange_->on_close([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel_all();
  });
  if (stream_) schedule_keep_alive(loop);
}

void Generation::deliver(int prompt, const core::RequestOutput& output) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  std::string bytes = writer_->add(prompt, output);
  keep_tokens(prompt, output);
  if (const std::optional<Error> error = api::failure_of(output)) {
    fail(*error);
    return;
  }
  if (!bytes.empty()) send(std::move(bytes));
  if (fail_after_ >= 0 && token_count_ >= fail_after_) {
    fail(Error(ErrorKind::kInternal, "The script asked for this failure."));
    return;
  }
  if (!writer_->complete()) {
    hold_back();
    return;
  }
  ended_ = true;
  if (stream_) exchange_->finish();
  if (hook_) hook_(tokens_);
}

void Generation::fail(const Error& error) {
  if (std::exchange(ended_, true)) return;
  for (const core::RequestId id : ids_) model_.cancel(id);
  if (!begun_) {
    respond_error(*exchange_, error);
    return;
  }
  exchange_->write(writer_->error_event(error));
  exchange_->finish();
}

void Generation::send(std::string bytes) {
  if (!stream_) {
    exchange_->respond({200, {{"content-type", "application/json"}}, std::move(bytes)});
    return;
  }
  begin_stream();
  quiet_ = false;
  exchange_->write(std::move(bytes));
}

void Generation::begin_stream() {
  if (std::exchange(begun_, true)) return;
  exchange_->start(200, {{"content-type", "text/event-stream; charset=utf-8"},
                         {"cache-control", "no-cache"},
                         {"x-accel-buffering", "no"}});
}

void Generation::keep_tokens(int prompt, const core::RequestOutput& output) {
  for (const core::ChoiceOutput& choice : output.choices) {
    token_count_ += static_cast<int>(choice.tokens.size());
    if (!hook_) continue;
    std::vector<core::TokenId>& kept = tokens_[prompt * n_ + choice.choice];
    kept.insert(kept.end(), choice.tokens.begin(), choice.tokens.end());
  }
}

// A long prefill sends nothing; proxies and clients would give the connection up.
void Generation::schedule_keep_alive(http::Loop& loop) {
  loop.after(options_.keep_alive, [weak = weak_from_this(), &loop] {
    const auto self = weak.lock();
    if (!self) return;
    self->keep_alive();
    self->schedule_keep_alive(loop);
  });
}

void Generation::keep_alive() {
  const std::lock_guard lock(mutex_);
  if (ended_ || !std::exchange(quiet_, true)) return;
  begin_stream();
  exchange_->write(std::string(http::kSseKeepAlive));
}

// A client that does not read rests its own sequences and slows no other.
void Generation::hold_back() {
  if (exchange_->queued_bytes() <= options_.output_bytes) return;
  for (const core::RequestId id : ids_) model_.pause(id, true);
  // It may have drained between the look and the pause; then no drain is reported any more.
  if (exchange_->queued_bytes() > options_.output_bytes / 2) return;
  for (const core::RequestId id : ids_) model_.pause(id, false);
}

void Generation::cancel_all() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const core::RequestId id : ids_) model_.cancel(id);
}

std::vector<core::RequestId> Generation::ids() const {
  const std::lock_guard lock(mutex_);
  return ids_;
}

}  // namespace bodega::server
