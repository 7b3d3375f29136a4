#include "http/loop.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/log.h"
#include "http/loop_core.h"

namespace bodega::http {
namespace {

// A callback that throws ends itself, never the server.
void run_io(asio::io_context& io) {
  while (!io.stopped()) {
    try {
      io.run();
    } catch (const std::exception& error) {
      log_error("A callback of the event loop failed", {{"error", error.what()}});
    }
  }
}

}  // namespace

Loop::Loop() : core_(std::make_shared<Core>()) {}
Loop::~Loop() { stop(); }

void Loop::start() {
  if (core_->thread.joinable()) return;
  core_->thread = std::thread([core = core_.get()] {
    core->thread_id = std::this_thread::get_id();
    run_io(core->io);
  });
}

void Loop::stop() {
  core_->io.stop();
  join();
}

void Loop::join() {
  if (core_->thread.joinable()) core_->thread.join();
}

bool Loop::on_thread() const { return core_->thread_id.load() == std::this_thread::get_id(); }

void Loop::post(std::function<void()> task) { asio::post(core_->io, std::move(task)); }

void Loop::after(std::chrono::milliseconds delay, std::function<void()> task) {
  post([core = core_.get(), delay, task = std::move(task)]() mutable {
    auto timer = std::make_shared<Timer>(core->io, delay);
    timer->async_wait([timer, task = std::move(task)](ErrorCode error) {
      if (!error) task();
    });
  });
}

}  // namespace bodega::http
