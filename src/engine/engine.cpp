#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/errors.h"
#include "base/log.h"
#include "engine/inbox.h"
#include "engine/runner.h"
#include "engine/stats_board.h"
#include "engine/step_loop.h"
#include "engine/text_codec.h"
#include "engine/validate.h"

namespace bodega::engine {
namespace {

RequestLimits limits_of(const EngineConfig& config, const Runner& runner) {
  const std::int64_t pool = std::int64_t{runner.block_count()} * core::kBlockTokens;
  const std::int64_t context =
      config.context_length > 0 ? config.context_length : std::numeric_limits<int>::max();
  return {runner.vocab_size(), static_cast<int>(std::min(pool, context))};
}

// On the caller's thread: the engine's has no time for it.
std::vector<std::unique_ptr<core::TokenMatcher>> start_matchers(const core::Request& request) {
  std::vector<std::unique_ptr<core::TokenMatcher>> matchers;
  if (request.constraint == nullptr) return matchers;
  for (int i = 0; i < request.n; ++i) matchers.push_back(request.constraint->start());
  return matchers;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(EngineConfig config, std::shared_ptr<const TextCodec> codec,
       std::function<std::unique_ptr<Runner>()> make_runner)
      : config_(std::move(config)), codec_(std::move(codec)) {
    std::promise<RequestLimits> ready;
    std::future<RequestLimits> limits = ready.get_future();
    thread_ = std::thread([this, make = std::move(make_runner),
                           ready = std::move(ready)]() mutable { serve(make, ready); });
    try {
      limits_ = limits.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }

  ~Impl() {
    inbox_.close();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  core::RequestId submit(core::Request request, OutputSink sink) {
    validate(request, limits_);
    if (draining_) throw unavailable("The model is being unloaded.");
    if (!board_.read().alive) throw unavailable("The model's engine has stopped.");
    std::vector<std::unique_ptr<core::TokenMatcher>> matchers = start_matchers(request);
    if (const auto refused = board_.request_came(config_.max_waiting, config_.queue_timeout_s)) {
      if (*refused == ErrorKind::kUnavailable) {
        throw unavailable(
            "The request would wait for longer than the queue's time-out: try later.");
      }
      Error full(*refused, "The queue is full: try again later.");
      full.retry_after_s = board_.retry_after_s();
      throw full;
    }
    request.id = ++last_id_;
    const core::RequestId id = request.id;
    Submission submission{std::move(request), std::move(sink), monotonic_seconds(),
                          std::move(matchers)};
    if (!inbox_.submit(std::move(submission))) {
      board_.request_left(false);
      throw unavailable("The model's engine has stopped.");
    }
    return id;
  }

  void drain(double seconds) {
    constexpr double kCancelSeconds = 10.0;
    draining_ = true;
    if (board_.wait_until_empty(seconds)) return;
    inbox_.cancel_all();
    board_.wait_until_empty(kCancelSeconds);
  }

  Inbox& inbox() { return inbox_; }
  EngineStats stats() const { return board_.read(); }
  int context_length() const { return limits_.context_tokens; }

 private:
  Error unavailable(const char* message) const {
    Error error(ErrorKind::kUnavailable, message);
    error.retry_after_s = board_.retry_after_s();
    return error;
  }

  // The engine's thread: everything from the runner's birth to its end happens here.
  void serve(const std::function<std::unique_ptr<Runner>()>& make_runner,
             std::promise<RequestLimits>& ready) {
    std::unique_ptr<Runner> runner;
    std::unique_ptr<StepLoop> loop;
    try {
      runner = make_runner();
      loop = std::make_unique<StepLoop>(config_, *codec_, *runner, inbox_, board_);
      ready.set_value(limits_of(config_, *runner));
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    try {
      loop->run();
    } catch (const std::exception& error) {
      log_error("the engine's loop has died", {{"reason", error.what()}});
      inbox_.close();
      loop->fail_all("The model's engine has stopped.");
    }
    board_.set_stopped();
  }

  const EngineConfig config_;
  const std::shared_ptr<const TextCodec> codec_;
  Inbox inbox_;
  StatsBoard board_;
  RequestLimits limits_;
  std::atomic<core::RequestId> last_id_{0};
  std::atomic<bool> draining_{false};
  std::thread thread_;
};

Engine::Engine(EngineConfig config, std::shared_ptr<const TextCodec> codec,
               std::function<std::unique_ptr<Runner>()> make_runner)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(codec), std::move(make_runner))) {}

Engine::~Engine() = default;

core::RequestId Engine::submit(core::Request request, OutputSink sink) {
  return impl_->submit(std::move(request), std::move(sink));
}

void Engine::cancel(core::RequestId id) { impl_->inbox().cancel(id); }

void Engine::pause(core::RequestId id, bool paused) { impl_->inbox().pause(id, paused); }

EngineStats Engine::stats() const { return impl_->stats(); }

int Engine::context_length() const { return impl_->context_length(); }

void Engine::drain(double seconds) { impl_->drain(seconds); }

}  // namespace bodega::engine
