#include "registry/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/errors.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX

namespace bodega::registry {
namespace {

// A pipe end that closes itself and stays out of children.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    throw Error(ErrorKind::kUnavailable,
                std::string("No pipe for a worker: ") + std::strerror(errno));
  }
  ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  // Above kLifelineFd, so that moving it there in the child is a real copy.
  Pipe out{Descriptor(::fcntl(ends[0], F_DUPFD_CLOEXEC, kLifelineFd + 1)), Descriptor(ends[1])};
  ::close(ends[0]);
  return out;
}

// posix_spawn's two option objects, with what every worker needs in them.
class SpawnSettings {
 public:
  explicit SpawnSettings(int lifeline) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, lifeline, kLifelineFd);
    posix_spawnattr_init(&attributes_);
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
#ifdef __APPLE__
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
    posix_spawn_file_actions_addinherit_np(&actions_, STDOUT_FILENO);
    posix_spawn_file_actions_addinherit_np(&actions_, STDERR_FILENO);
#else
    // Asio's sockets are not close-on-exec: a worker must hold neither the port nor a client.
    posix_spawn_file_actions_addclosefrom_np(&actions_, kLifelineFd + 1);
#endif
    posix_spawnattr_setflags(&attributes_, flags);
    posix_spawnattr_setpgroup(&attributes_, 0);  // Ctrl-C is for the front, which drains first
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int signal : {SIGTERM, SIGINT, SIGPIPE, SIGHUP}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

class ChildProcess final : public Process {
 public:
  ChildProcess(pid_t pid, Descriptor lifeline, std::function<void(ExitStatus)> on_exit)
      : pid_(pid), lifeline_(std::move(lifeline)), waiter_([this, on_exit = std::move(on_exit)] {
          const ExitStatus status = wait();
          on_exit(status);
        }) {}
  ~ChildProcess() override {
    kill();
    waiter_.join();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const override { return pid_; }
  void terminate() override { send(SIGTERM); }
  void kill() override { send(SIGKILL); }

 private:
  // The number may belong to a stranger once the child was reaped: wait() marks the end under the
  // lock after it has seen, but not yet reaped, the dead child.
  void send(int signal) {
    const std::lock_guard lock(mutex_);
    if (!ended_) ::kill(pid_, signal);
  }

  ExitStatus wait() {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
  }

  const pid_t pid_;
  const Descriptor lifeline_;
  std::mutex mutex_;  // guards ended_
  bool ended_ = false;
  std::thread waiter_;
};

}  // namespace

std::string describe(const ExitStatus& status) {
  if (status.signal == 0) return "ended with code " + std::to_string(status.code);
  return "was killed by signal " + std::to_string(status.signal) + " (" +
         ::strsignal(status.signal) + ")";
}

std::unique_ptr<Process> spawn_process(const std::vector<std::string>& command,
                                       std::function<void(ExitStatus)> on_exit) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  Pipe lifeline = make_pipe();
  const SpawnSettings settings(lifeline.read.get());
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments.front(), settings.actions(),
                                   settings.attributes(), arguments.data(), environ);
  if (error != 0) {
    throw Error(ErrorKind::kUnavailable,
                "The worker " + command.front() + " cannot be started: " + std::strerror(error));
  }
  return std::make_unique<ChildProcess>(pid, std::move(lifeline.write), std::move(on_exit));
}

std::string own_program() {
  std::array<char, PATH_MAX> path{};
#ifdef __APPLE__
  std::uint32_t size = path.size();
  if (_NSGetExecutablePath(path.data(), &size) != 0) {
    throw Error(ErrorKind::kInternal, "The path of the running program is too long.");
  }
#else
  if (::readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) {
    throw Error(ErrorKind::kInternal, std::string("/proc/self/exe: ") + std::strerror(errno));
  }
#endif
#ifdef __linux__
  // Replaced by a newer build while it runs: the link still leads to the very program that we are.
  if (::access(path.data(), X_OK) != 0) return "/proc/self/exe";
#endif
  return path.data();
}

}  // namespace bodega::registry
