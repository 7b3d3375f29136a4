#include "registry/worker.h"

#include <utility>

#include "base/errors.h"
#include "base/log.h"

namespace bodega::registry {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kFirstProbe{20};
constexpr Milliseconds kLongestProbe{250};

Milliseconds between(std::chrono::steady_clock::time_point from,
                     std::chrono::steady_clock::time_point to) {
  return std::chrono::duration_cast<Milliseconds>(to - from);
}

}  // namespace

const char* name_of(WorkerState state) {
  switch (state) {
    case WorkerState::kLoading:
      return "loading";
    case WorkerState::kReady:
      return "loaded";
    case WorkerState::kRestarting:
      return "restarting";
    case WorkerState::kFailed:
      return "failed";
    case WorkerState::kStopping:
      return "unloading";
    case WorkerState::kStopped:
      return "unloaded";
  }
  return "unknown";
}

Worker::Worker(const Environment& environment, std::string id, std::string socket_prefix,
               MakeCommand make_command, std::function<void(Worker&)> on_change)
    : environment_(environment),
      id_(std::move(id)),
      socket_prefix_(std::move(socket_prefix)),
      make_command_(std::move(make_command)),
      on_change_(std::move(on_change)) {}

void Worker::start() {
  if (state_ != WorkerState::kStopped) return;
  state_ = WorkerState::kLoading;
  launch();
}

void Worker::launch() {
  const int life = ++life_;
  launched_at_ = environment_.now();
  socket_path_ = socket_prefix_ + std::to_string(life);
  try {
    process_ = environment_.launch(make_command_(socket_path_),
                                   [this, life, weak = weak_from_this()](ExitStatus status) {
                                     environment_.post([weak, life, status] {
                                       if (const auto self = weak.lock())
                                         self->on_exit(life, status);
                                     });
                                   });
  } catch (const Error& error) {
    return end_life(error.what());
  }
  log_info("A worker was started", {{"model", id_}, {"pid", process_->pid()}});
  poll(life, kFirstProbe);
}

void Worker::poll(int life, Milliseconds delay) {
  environment_.after(delay, [this, weak = weak_from_this(), life, delay] {
    const auto self = weak.lock();
    if (!self || life != life_ || !process_) return;
    environment_.probe(socket_path_, [weak, life, delay](bool ready, const std::string& card) {
      if (const auto probed = weak.lock()) probed->on_probe(life, delay, ready, card);
    });
  });
}

void Worker::on_probe(int life, Milliseconds delay, bool ready, const std::string& card) {
  const bool waited_for = state_ == WorkerState::kLoading || state_ == WorkerState::kRestarting;
  if (life != life_ || !process_ || !waited_for) return;
  if (!ready) return poll(life, std::min(delay * 2, kLongestProbe));
  card_ = card;
  was_ready_ = true;
  ready_at_ = environment_.now();
  load_time_ = between(launched_at_, ready_at_);
  log_info("A model is ready", {{"model", id_}, {"load_ms", load_time_.count()}});
  enter(WorkerState::kReady);
}

void Worker::on_exit(int life, const ExitStatus& status) {
  if (life == life_) end_life("The worker " + describe(status) + ".");
}

void Worker::end_life(const std::string& reason) {
  const auto keep = shared_from_this();
  process_.reset();
  reason_ = reason;
  if (state_ == WorkerState::kStopping) return enter(WorkerState::kStopped);
  log_error("A worker ended", {{"model", id_}, {"reason", reason}});
  if (!was_ready_) return enter(WorkerState::kFailed);

  const Milliseconds uptime = ready() ? between(ready_at_, environment_.now()) : Milliseconds{0};
  const Milliseconds delay = backoff_.next(uptime);
  restart_at_ = environment_.now() + delay;
  ++restarts_;
  const int life = life_;
  environment_.after(delay, [weak = weak_from_this(), life] {
    const auto self = weak.lock();
    if (self && self->state_ == WorkerState::kRestarting && life == self->life_) self->launch();
  });
  enter(WorkerState::kRestarting);
}

void Worker::stop(Milliseconds grace) {
  if (state_ == WorkerState::kStopping || state_ == WorkerState::kStopped) return;
  if (!process_) return enter(WorkerState::kStopped);
  process_->terminate();
  environment_.after(grace, [weak = weak_from_this(), life = life_] {
    const auto self = weak.lock();
    if (self && self->process_ && life == self->life_) self->process_->kill();
  });
  enter(WorkerState::kStopping);
}

int Worker::retry_after_s() const {
  const auto now = environment_.now();
  Milliseconds wait{0};
  if (state_ == WorkerState::kRestarting && restart_at_ > now) wait = between(now, restart_at_);
  if (!ready()) wait += load_time_;
  return static_cast<int>(wait.count() / 1000) + 1;
}

void Worker::enter(WorkerState state) {
  state_ = state;
  on_change_(*this);
}

}  // namespace bodega::registry
