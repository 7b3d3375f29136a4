#include "registry/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>

#include "base/errors.h"

namespace bodega::registry {
namespace {

using testing::HasSubstr;

// Runs a shell line and waits for its end.
ExitStatus run(const std::string& line, const std::function<void(Process&)>& meanwhile = {}) {
  std::promise<ExitStatus> ended;
  const auto process =
      spawn_process({"/bin/sh", "-c", line}, [&](ExitStatus status) { ended.set_value(status); });
  if (meanwhile) meanwhile(*process);
  auto future = ended.get_future();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  return future.get();
}

TEST(Process, TellsHowItEnded) {
  EXPECT_EQ(run("exit 7").code, 7);
  EXPECT_EQ(describe(run("exit 7")), "ended with code 7");
  const ExitStatus killed = run("sleep 60", [](Process& process) { process.kill(); });
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_THAT(describe(killed), HasSubstr("signal 9"));
  EXPECT_EQ(run("sleep 60", [](Process& process) { process.terminate(); }).signal, SIGTERM);
}

TEST(Process, HasNoDescriptorOfOursButTheLifeline) {
  // Not close-on-exec, as Asio's sockets. Two, so that one is beyond the lifeline's number.
  const std::array<int, 2> leaks{::open("/dev/null", O_RDONLY), ::open("/dev/null", O_RDONLY)};
  ASSERT_GT(leaks[1], kLifelineFd);
  ASSERT_LT(leaks[1], 10);
  const char* const look =
      "for fd in 3 4 5 6 7 8 9; do if (true <&$fd) 2>/dev/null; then found=$found$fd; fi; done;"
      "exit $found";
  EXPECT_EQ(run(look).code, kLifelineFd);
  for (const int leak : leaks) ::close(leak);
}

TEST(Process, ItsGroupIsItsOwnAndItsSignalsAreFresh) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const ExitStatus status = run("sleep 60", [](Process& process) {
    EXPECT_EQ(::getpgid(process.pid()), process.pid());
    process.terminate();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(status.signal, SIGTERM);
}

// A front that is killed takes its workers along: they read the end of the lifeline.
TEST(Process, TheLifelineEndsWithTheParent) {
  std::array<int, 2> report{};
  ASSERT_EQ(::pipe(report.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::dup2(report[1], STDOUT_FILENO);
    ::close(report[0]);
    ::close(report[1]);
    const auto child =
        spawn_process({"/bin/sh", "-c", "echo on; cat <&3; echo gone"}, [](ExitStatus) {});
    ::pause();
  }
  ::close(report[1]);
  std::array<char, 64> text{};
  ASSERT_EQ(::read(report[0], text.data(), 3), 3);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  const ssize_t count = ::read(report[0], text.data(), text.size());
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))),
            "gone\n");
  ::close(report[0]);
}

TEST(Process, AProgramThatIsNotThereIsAnError) {
  EXPECT_THROW(spawn_process({"/no/such/program"}, [](ExitStatus) {}), Error);
}

TEST(Process, KnowsItsOwnPath) { EXPECT_THAT(own_program(), HasSubstr("registry_test")); }

}  // namespace
}  // namespace bodega::registry
