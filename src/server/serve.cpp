#include "server/serve.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>

#include "base/errors.h"
#include "base/log.h"
#include "server/front.h"
#include "server/model_names.h"
#include "server/wake_pipe.h"

namespace bodega::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr char kLoadFailed = 'F';
constexpr char kUnloaded = 'U';
constexpr seconds kWorkerGrace{5};  // from SIGTERM to SIGKILL, for a worker without requests
constexpr milliseconds kLastWords{1000};
constexpr milliseconds kDrainPoll{20};

// The embedded default where no model was named, an id for each, none twice.
ServeOptions complete(ServeOptions options) {
  if (options.models.empty()) options.models.emplace_back();
  std::set<std::string> ids;
  for (ModelOptions& model : options.models) {
    model.model_id = model_id_of(model);
    if (!ids.insert(model.model_id).second) {
      throw Error(ErrorKind::kConfig, "Two models have the id \"" + model.model_id + "\".",
                  "model_id");
    }
  }
  return options;
}

// A connection is a descriptor, and a stream is two.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Appears whole or not at all.
void write_port_file(const std::string& path, std::uint16_t port) {
  if (path.empty()) return;
  const std::string partial = path + ".partial";
  std::ofstream(partial) << port << '\n';
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    throw Error(ErrorKind::kConfig, "The port file " + path + " cannot be written.", "port_file");
  }
}

// The workers read the end of their lifelines and end too.
[[noreturn]] void end_now() {
  log_warn("A second signal: ending at once");
  ::_exit(1);
}

// Runs until a signal or a failed load; the exit code.
int wait_for_the_end(const WakePipe& pipe) {
  while (true) {
    const auto news = pipe.wait(milliseconds(-1));
    if (news == WakePipe::kSignal) return 0;
    if (news == kLoadFailed) return 1;
  }
}

// True when no answer is left.
bool wait_for_answers(const Front& front, const WakePipe& pipe, milliseconds bound) {
  const auto until = Clock::now() + bound;
  while (front.open_answers() > 0) {
    if (Clock::now() >= until) return false;
    if (pipe.wait(kDrainPoll) == WakePipe::kSignal) end_now();
  }
  return true;
}

void end_workers(Front& front, const WakePipe& pipe, milliseconds grace) {
  front.unload_all(grace, [&pipe] { pipe.wake(kUnloaded); });
  while (true) {
    const auto news = pipe.wait(grace + kLastWords);
    if (!news || news == kUnloaded) break;
    if (news == WakePipe::kSignal) end_now();
  }
  wait_for_answers(front, pipe, kLastWords);  // what lost its worker is told so
}

}  // namespace

int serve(const ServeOptions& given) {
  const ServeOptions options = complete(given);
  raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);
  const WakePipe pipe{SIGTERM, SIGINT};
  Front front(options);
  write_port_file(options.server.port_file, front.port());
  log_info("Listening", {{"host", options.server.host}, {"port", front.port()}});
  front.start([&pipe](const std::string& model, const std::string& failure) {
    if (failure.empty()) return;
    log_error("A model could not be loaded", {{"model", model}, {"reason", failure}});
    pipe.wake(kLoadFailed);
  });

  const int code = wait_for_the_end(pipe);
  front.stop_accepting();
  log_info("Draining", {{"answers", front.open_answers()}});
  const bool drained =
      wait_for_answers(front, pipe, seconds(code == 0 ? options.server.drain_seconds : 0));
  end_workers(front, pipe, drained ? kWorkerGrace : milliseconds(0));
  front.stop();
  return code;
}

}  // namespace bodega::server
