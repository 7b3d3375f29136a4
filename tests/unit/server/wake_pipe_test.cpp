#include "server/wake_pipe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace bodega::server {
namespace {

using std::chrono::milliseconds;

TEST(WakePipe, TellsSignalsAndNewsInOrder) {
  const WakePipe pipe{SIGTERM, SIGUSR2};
  EXPECT_EQ(pipe.wait(milliseconds(0)), std::nullopt);
  ::raise(SIGTERM);
  pipe.wake('n');
  ::raise(SIGUSR2);
  EXPECT_EQ(pipe.wait(milliseconds(-1)), WakePipe::kSignal);
  EXPECT_EQ(pipe.wait(milliseconds(-1)), 'n');
  EXPECT_EQ(pipe.wait(milliseconds(-1)), WakePipe::kSignal);
}

TEST(WakePipe, ASignalToAnotherThreadArrivesToo) {
  const WakePipe pipe{SIGTERM};
  std::thread other([] { ::pthread_kill(::pthread_self(), SIGTERM); });
  EXPECT_EQ(pipe.wait(milliseconds(5000)), WakePipe::kSignal);
  other.join();
}

TEST(WakePipe, TheEndOfTheLifelineIsNews) {
  const WakePipe pipe{SIGTERM};
  std::array<int, 2> lifeline{};
  ASSERT_EQ(::pipe(lifeline.data()), 0);
  EXPECT_EQ(pipe.wait(milliseconds(0), lifeline[0]), std::nullopt);
  ::close(lifeline[1]);
  EXPECT_EQ(pipe.wait(milliseconds(5000), lifeline[0]), WakePipe::kLifelineCut);
  ::close(lifeline[0]);
}

TEST(WakePipe, TheSignalHasItsDefaultAgainAfterwards) {
  {
    const WakePipe pipe{SIGUSR2};
  }
  struct sigaction action{};
  ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace bodega::server
