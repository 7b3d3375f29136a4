#include "server/wake_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errors.h"

namespace bodega::server {
namespace {

int g_wake_fd = -1;  // a signal handler can reach nothing else

void on_signal(int /*signal*/) {
  const int saved = errno;
  const char byte = WakePipe::kSignal;
  [[maybe_unused]] const ssize_t written = ::write(g_wake_fd, &byte, 1);
  errno = saved;
}

}  // namespace

WakePipe::WakePipe(std::initializer_list<int> signals) {
  if (::pipe(ends_.data()) != 0) throw Error(ErrorKind::kConfig, "Cannot make a pipe.");
  for (const int fd : ends_) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  g_wake_fd = ends_[1];
  std::copy(signals.begin(), signals.end(), signals_.begin());
  struct sigaction action{};
  action.sa_handler = on_signal;
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

WakePipe::~WakePipe() {
  for (const int signal : signals_) {
    if (signal != 0) ::signal(signal, SIG_DFL);
  }
  g_wake_fd = -1;
  for (const int fd : ends_) ::close(fd);
}

void WakePipe::wake(char news) const {
  [[maybe_unused]] const ssize_t written = ::write(ends_[1], &news, 1);
}

std::optional<char> WakePipe::wait(std::chrono::milliseconds timeout, int lifeline_fd) const {
  std::array<pollfd, 2> fds{pollfd{ends_[0], POLLIN, 0}, pollfd{lifeline_fd, POLLIN, 0}};
  char byte = 0;
  while (true) {
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
    if (ready == 0) return std::nullopt;
    if (ready < 0) continue;  // interrupted by the signal itself
    if (fds[1].revents != 0 && ::read(lifeline_fd, &byte, 1) <= 0) return kLifelineCut;
    if (fds[0].revents != 0 && ::read(ends_[0], &byte, 1) == 1) return byte;
  }
}

}  // namespace bodega::server
