#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bodega::registry {

// How a process ended.
struct ExitStatus {
  int code = 0;    // its exit code, when it ended by itself
  int signal = 0;  // what killed it, 0 when nothing did
};
std::string describe(const ExitStatus& status);  // "was killed by signal 9 (Killed)"

class Process {
 public:
  virtual ~Process() = default;  // kills what still runs, and waits for its end
  virtual int pid() const = 0;
  virtual void terminate() = 0;  // SIGTERM
  virtual void kill() = 0;       // SIGKILL
};

// Descriptor on which a child finds its lifeline: the read end of a pipe whose write end only the
// parent holds, so that end of file means that the parent is gone, however it went.
inline constexpr int kLifelineFd = 3;

// Starts a program (command[0] is a path, or a name for PATH) in a process group of its own, with
// standard output and error of the parent and no other descriptor but the lifeline. `on_exit` is
// called once, on a thread of the process. Throws Error(kUnavailable) when it cannot be started.
std::unique_ptr<Process> spawn_process(const std::vector<std::string>& command,
                                       std::function<void(ExitStatus)> on_exit);

// Path of the program that is running.
std::string own_program();

}  // namespace bodega::registry
