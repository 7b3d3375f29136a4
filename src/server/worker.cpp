#include "server/worker.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "server/wake_pipe.h"
#include "server/worker_state.h"

namespace bodega::server {
namespace {

constexpr double kDrainSeconds = 30;

// News beside the signal and the end of the front.
constexpr char kLoadFailed = 'F';
constexpr char kDrained = 'D';

char wait_for_news(const WakePipe& pipe, int lifeline_fd) {
  return pipe.wait(std::chrono::milliseconds(-1), lifeline_fd).value_or(WakePipe::kLifelineCut);
}

// A front that was killed leaves its folder of sockets to the last of its workers.
void remove_socket(const std::string& path) {
  ::unlink(path.c_str());
  ::rmdir(path.substr(0, path.rfind('/')).c_str());  // fails while others are in it
}

// The loader may be inside a long read that nothing interrupts; a worker that is to end then just
// ends.
[[noreturn]] void end_now(int code) { ::_exit(code); }

void load(WorkerState& state, const ModelLoader& loader, const WakePipe& pipe) {
  try {
    state.model = loader(state.options);
    state.ready = true;
    log_info("The model is loaded.", {{"model", state.model->facts().id}});
  } catch (const std::exception& error) {
    log_error("The model could not be loaded.",
              {{"model", state.options.model.model_path}, {"reason", error.what()}});
    pipe.wake(kLoadFailed);
  }
}

void drain(WorkerState& state, const WakePipe& pipe) {
  state.draining = true;
  std::thread draining([&] {
    state.model->drain(kDrainSeconds);
    pipe.wake(kDrained);
  });
  // Anything else is a second signal, or nobody is left to answer.
  if (wait_for_news(pipe, state.options.lifeline_fd) != kDrained) {
    remove_socket(state.options.socket_path);
    end_now(0);
  }
  draining.join();
}

}  // namespace

int run_worker(const WorkerOptions& options, const ModelLoader& loader) {
  // Ctrl-C is for the front, which decides what it means.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  const WakePipe pipe{SIGTERM};
  WorkerState state(options);
  auto router = std::make_shared<const http::Router>(make_worker_router(state));
  http::Listen listen;
  listen.unix_path = options.socket_path;
  http::Server server(listen, limits_from(options.limits), make_worker_handler(router),
                      render_http_failure);
  state.loop = &server.loop();
  server.start();

  std::thread loading([&] { load(state, loader, pipe); });
  const char wake = wait_for_news(pipe, options.lifeline_fd);
  if (wake == WakePipe::kLifelineCut) {
    remove_socket(options.socket_path);
    end_now(0);
  }
  if (wake == WakePipe::kSignal && !state.ready) end_now(0);
  loading.join();
  if (wake == WakePipe::kSignal) drain(state, pipe);
  server.stop();
  state.work.stop();  // their tasks use the server's loop
  state.compile.stop();
  return wake == kLoadFailed ? 1 : 0;
}

}  // namespace bodega::server
