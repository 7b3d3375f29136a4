#include "server/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "server/worker_state.h"

namespace bodega::server {
namespace {

constexpr double kDrainSeconds = 30;

// What wakes the main thread, as the byte that travels through its pipe.
enum class Wake : char { kTerminate = 'T', kLoadFailed = 'F', kDrained = 'D', kFrontGone = 'G' };

int g_wake_fd = -1;  // write end of the pipe; a signal handler can reach nothing else

void on_signal(int /*signal*/) {
  const int saved = errno;
  const char byte = static_cast<char>(Wake::kTerminate);
  [[maybe_unused]] const ssize_t written = ::write(g_wake_fd, &byte, 1);
  errno = saved;
}

// Turns signals and the ends of other threads into bytes that the main thread can poll for.
class WakePipe {
 public:
  WakePipe() {
    if (::pipe(ends_.data()) != 0) throw Error(ErrorKind::kConfig, "Cannot make a pipe.");
    for (const int fd : ends_) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    g_wake_fd = ends_[1];
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGTERM, &action, nullptr);
    action.sa_handler = SIG_IGN;  // Ctrl-C reaches the whole group; the front decides what it means
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGPIPE, &action, nullptr);
  }
  ~WakePipe() {
    ::signal(SIGTERM, SIG_DFL);
    for (const int fd : ends_) ::close(fd);
  }
  WakePipe(const WakePipe&) = delete;
  WakePipe& operator=(const WakePipe&) = delete;

  int read_end() const { return ends_[0]; }
  void wake(Wake reason) const {
    const char byte = static_cast<char>(reason);
    [[maybe_unused]] const ssize_t written = ::write(ends_[1], &byte, 1);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// Waits for a byte in the pipe, or the end of the front's lifeline.
Wake wait_for_wake(const WakePipe& pipe, int lifeline_fd) {
  std::array<pollfd, 2> fds{pollfd{pipe.read_end(), POLLIN, 0}, pollfd{lifeline_fd, POLLIN, 0}};
  while (true) {
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;  // interrupted by the signal itself
    char byte = 0;
    if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && ::read(lifeline_fd, &byte, 1) <= 0) {
      return Wake::kFrontGone;
    }
    if ((fds[0].revents & POLLIN) != 0 && ::read(pipe.read_end(), &byte, 1) == 1) {
      return static_cast<Wake>(byte);
    }
  }
}

// The loader may be inside a long read that nothing interrupts; a worker that is to end then just ends.
[[noreturn]] void end_now(int code) { ::_exit(code); }

void load(WorkerState& state, const ModelLoader& loader, const WakePipe& pipe) {
  try {
    state.model = loader(state.options);
    state.ready = true;
    log_info("The model is loaded.", {{"model", state.model->facts().id}});
  } catch (const std::exception& error) {
    log_error("The model could not be loaded.",
              {{"model", state.options.model.model_path}, {"reason", error.what()}});
    pipe.wake(Wake::kLoadFailed);
  }
}

void drain(WorkerState& state, const WakePipe& pipe, int lifeline_fd) {
  state.draining = true;
  std::thread draining([&] {
    state.model->drain(kDrainSeconds);
    pipe.wake(Wake::kDrained);
  });
  // Anything else is a second signal, or nobody is left to answer.
  if (wait_for_wake(pipe, lifeline_fd) != Wake::kDrained) end_now(0);
  draining.join();
}

}  // namespace

int run_worker(const WorkerOptions& options, const ModelLoader& loader) {
  const WakePipe pipe;
  WorkerState state(options);
  auto router = std::make_shared<const http::Router>(make_worker_router(state));
  http::Listen listen;
  listen.unix_path = options.socket_path;
  http::Server server(listen, limits_from(options.limits), make_worker_handler(router),
                      render_http_failure);
  state.loop = &server.loop();
  server.start();

  std::thread loading([&] { load(state, loader, pipe); });
  const Wake wake = wait_for_wake(pipe, options.lifeline_fd);
  if (wake == Wake::kFrontGone) end_now(0);
  if (wake == Wake::kTerminate && !state.ready) end_now(0);
  loading.join();
  if (wake == Wake::kTerminate) drain(state, pipe, options.lifeline_fd);
  server.stop();
  state.work.stop();  // its tasks use the server's loop
  return wake == Wake::kLoadFailed ? 1 : 0;
}

}  // namespace bodega::server
