#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "registry/backoff.h"
#include "registry/process.h"

namespace bodega::registry {

// What a registry needs of its host. All but `post` is called on the host's one thread, and calls
// back there, never from inside the call.
struct Environment {
  std::function<void(std::function<void()>)> post;  // from any thread, to that thread
  std::function<void(std::chrono::milliseconds, std::function<void()>)> after;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<std::unique_ptr<Process>(const std::vector<std::string>& command,
                                         std::function<void(ExitStatus)> on_exit)>
      launch;
  // Asks the worker behind a socket whether it is ready. `card` describes its model.
  std::function<void(const std::string& socket_path,
                     std::function<void(bool ready, const std::string& card)>)>
      probe;
};

enum class WorkerState {
  kLoading,     // started, has never been ready
  kReady,       // answers
  kRestarting,  // died after it was ready: waits, or loads again
  kFailed,      // died before it was ever ready: starting it again would fail again
  kStopping,    // told to end
  kStopped,
};
const char* name_of(WorkerState state);  // "loading", "loaded", "restarting", ...

// One model's worker process over all its lives. Host's thread only.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  using MakeCommand = std::function<std::vector<std::string>(const std::string& socket_path)>;

  // `socket_prefix` + a number is the path of each life's socket. `on_change` is called after each
  // change of state.
  Worker(const Environment& environment, std::string id, std::string socket_prefix,
         MakeCommand make_command, std::function<void(Worker&)> on_change);

  void start();
  // SIGTERM, after `grace` SIGKILL. `on_change` tells kStopped.
  void stop(std::chrono::milliseconds grace);

  const std::string& id() const { return id_; }
  WorkerState state() const { return state_; }
  bool ready() const { return state_ == WorkerState::kReady; }
  const std::string& socket_path() const { return socket_path_; }
  const std::string& card() const { return card_; }      // of the last life that was ready
  const std::string& reason() const { return reason_; }  // why the last life ended
  int pid() const { return process_ ? process_->pid() : 0; }
  int restarts() const { return restarts_; }
  // Seconds until a client may find the worker ready, at least 1.
  int retry_after_s() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  void launch();
  void poll(int life, Milliseconds delay);
  void on_probe(int life, Milliseconds delay, bool ready, const std::string& card);
  void on_exit(int life, const ExitStatus& status);
  void end_life(const std::string& reason);
  void enter(WorkerState state);

  const Environment& environment_;
  const std::string id_;
  const std::string socket_prefix_;
  const MakeCommand make_command_;
  const std::function<void(Worker&)> on_change_;

  WorkerState state_ = WorkerState::kStopped;
  std::unique_ptr<Process> process_;
  std::string socket_path_;
  std::string card_;
  std::string reason_;
  Backoff backoff_;
  int life_ = 0;  // counts processes, so that news of an earlier one is told apart
  int restarts_ = 0;
  bool was_ready_ = false;
  Clock::time_point launched_at_;
  Clock::time_point ready_at_;
  Clock::time_point restart_at_;
  Milliseconds load_time_{1000};  // of the last life that became ready
};

}  // namespace bodega::registry
