// Life and death of workers, driven by a fake clock and fake processes.
#include "registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/errors.h"

namespace bodega::registry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A host without threads: time passes when the test says so.
class FakeHost {
 public:
  struct Child {
    std::vector<std::string> command;
    std::function<void(ExitStatus)> on_exit;
    bool alive = true;
    bool terminated = false;
    bool killed = false;
  };

  Environment environment() {
    Environment environment;
    environment.post = [this](std::function<void()> task) { at(milliseconds(0), std::move(task)); };
    environment.after = [this](milliseconds delay, std::function<void()> task) {
      at(delay, std::move(task));
    };
    environment.now = [this] { return now_; };
    environment.launch = [this](const std::vector<std::string>& command,
                                std::function<void(ExitStatus)> on_exit) {
      if (launch_fails) throw Error(ErrorKind::kUnavailable, "no such program");
      children.push_back(std::make_shared<Child>(Child{command, std::move(on_exit)}));
      return std::make_unique<FakeProcess>(children.back());
    };
    environment.probe = [this](const std::string& path,
                               std::function<void(bool, const std::string&)> answer) {
      at(milliseconds(0), [this, path, answer] { answer(ready_sockets[path], "card of " + path); });
    };
    return environment;
  }

  void advance(milliseconds by) {
    const auto until = now_ + by;
    while (!tasks_.empty() && tasks_.begin()->first <= until) {
      now_ = std::max(now_, tasks_.begin()->first);
      const auto task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
    }
    now_ = until;
  }

  std::string socket_of(const Child& child) const { return child.command.at(1); }
  void become_ready(const Child& child) {
    ready_sockets[socket_of(child)] = true;
    advance(milliseconds(500));
  }
  void die(Child& child, ExitStatus status = {0, 9}) {
    child.alive = false;
    child.on_exit(status);
    advance(milliseconds(0));
  }

  std::vector<std::shared_ptr<Child>> children;
  std::map<std::string, bool> ready_sockets;
  bool launch_fails = false;

 private:
  class FakeProcess final : public Process {
   public:
    explicit FakeProcess(std::shared_ptr<Child> child) : child_(std::move(child)) {}
    int pid() const override { return 42; }
    void terminate() override { child_->terminated = true; }
    void kill() override { child_->killed = true; }

   private:
    std::shared_ptr<Child> child_;
  };

  void at(milliseconds delay, std::function<void()> task) {
    tasks_.emplace(now_ + delay, std::move(task));
  }

  std::chrono::steady_clock::time_point now_{seconds(1000)};
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> tasks_;
};

std::vector<std::string> command(const std::string& socket) { return {"worker", socket}; }

class Registries : public testing::Test {
 protected:
  FakeHost host;
  Registry registry{host.environment()};
};

TEST_F(Registries, AModelIsLoadingUntilItsWorkerSaysReady) {
  int loaded = 0;
  registry.load("m", command, [&](Worker& worker) {
    ++loaded;
    EXPECT_TRUE(worker.ready());
  });
  ASSERT_EQ(host.children.size(), 1U);
  host.advance(seconds(10));
  EXPECT_EQ(registry.find("m")->state(), WorkerState::kLoading);
  EXPECT_EQ(loaded, 0);
  EXPECT_GE(registry.find("m")->retry_after_s(), 1);
  host.become_ready(*host.children[0]);
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ(registry.find("m")->card(), "card of " + host.socket_of(*host.children[0]));
  EXPECT_EQ(registry.default_model(), registry.find("m"));
}

TEST_F(Registries, LoadingTwiceWaitsForTheOneLoad) {
  int loaded = 0;
  for (int i = 0; i < 3; ++i) registry.load("m", command, [&](Worker&) { ++loaded; });
  EXPECT_EQ(host.children.size(), 1U);
  host.become_ready(*host.children[0]);
  EXPECT_EQ(loaded, 3);
  registry.load("m", command, [&](Worker&) { ++loaded; });  // there already
  EXPECT_EQ(loaded, 4);
  EXPECT_EQ(host.children.size(), 1U);
}

TEST_F(Registries, AWorkerThatWasNeverReadyIsNotStartedAgain) {
  std::string reason;
  registry.load("m", command, [&](Worker& worker) { reason = worker.reason(); });
  host.die(*host.children[0], {1, 0});
  host.advance(seconds(100));
  EXPECT_EQ(host.children.size(), 1U);
  EXPECT_EQ(registry.find("m")->state(), WorkerState::kFailed);
  EXPECT_EQ(reason, "The worker ended with code 1.");
}

TEST_F(Registries, AProgramThatCannotStartFailsTheLoad) {
  host.launch_fails = true;
  std::string reason;
  registry.load("m", command, [&](Worker& worker) { reason = worker.reason(); });
  EXPECT_EQ(reason, "no such program");
}

TEST_F(Registries, ADeadWorkerIsRestartedLaterAndLaterOnANewSocket) {
  registry.load("m", command);
  host.become_ready(*host.children[0]);
  milliseconds delay = Backoff::kFirst;
  for (std::size_t death = 1; death <= 10; ++death) {
    host.die(*host.children.back());
    ASSERT_EQ(registry.find("m")->state(), WorkerState::kRestarting);
    EXPECT_GE(registry.find("m")->retry_after_s(), delay.count() / 1000);
    host.advance(delay - milliseconds(1));
    ASSERT_EQ(host.children.size(), death);
    host.advance(milliseconds(1));
    ASSERT_EQ(host.children.size(), death + 1);
    delay = std::min(delay * 2, Backoff::kLongest);
  }
  EXPECT_EQ(registry.find("m")->restarts(), 10);
  EXPECT_NE(host.socket_of(*host.children[0]), host.socket_of(*host.children[1]));
  host.become_ready(*host.children.back());
  EXPECT_TRUE(registry.find("m")->ready());
  host.advance(Backoff::kStable);  // it stood long enough: the next death is a first one
  host.die(*host.children.back());
  host.advance(Backoff::kFirst);
  EXPECT_EQ(host.children.size(), 12U);
}

TEST_F(Registries, NewsOfAnEarlierLifeIsIgnored) {
  registry.load("m", command);
  host.become_ready(*host.children[0]);
  host.die(*host.children[0]);
  host.advance(Backoff::kFirst);
  host.become_ready(*host.children[1]);
  host.die(*host.children[0]);
  EXPECT_TRUE(registry.find("m")->ready());
}

TEST_F(Registries, OneModelsDeathIsNobodyElses) {
  registry.load("a", command);
  registry.load("b", command);
  host.become_ready(*host.children[0]);
  host.become_ready(*host.children[1]);
  host.die(*host.children[0]);
  EXPECT_FALSE(registry.find("a")->ready());
  EXPECT_TRUE(registry.find("b")->ready());
  EXPECT_EQ(registry.default_model()->id(), "a");
}

TEST_F(Registries, UnloadTerminatesThenKills) {
  bool gone = false;
  registry.load("m", command);
  host.become_ready(*host.children[0]);
  registry.unload("m", seconds(5), [&] { gone = true; });
  EXPECT_TRUE(host.children[0]->terminated);
  EXPECT_EQ(registry.find("m")->state(), WorkerState::kStopping);
  host.advance(milliseconds(4999));
  EXPECT_FALSE(host.children[0]->killed);
  host.advance(milliseconds(1));
  EXPECT_TRUE(host.children[0]->killed);
  EXPECT_FALSE(gone);
  host.die(*host.children[0]);
  EXPECT_TRUE(gone);
  EXPECT_EQ(registry.find("m"), nullptr);
  EXPECT_EQ(registry.default_model(), nullptr);
  host.advance(seconds(100));
  EXPECT_EQ(host.children.size(), 1U);
}

TEST_F(Registries, UnloadingWhileItWaitsToRestartEndsIt) {
  bool gone = false;
  registry.load("m", command);
  host.become_ready(*host.children[0]);
  host.die(*host.children[0]);
  registry.unload_all(seconds(5), [&] { gone = true; });
  EXPECT_TRUE(gone);
  host.advance(seconds(100));
  EXPECT_EQ(host.children.size(), 1U);
}

TEST_F(Registries, UnloadAllWaitsForEveryone) {
  int gone = 0;
  registry.unload_all(seconds(1), [&] { ++gone; });
  EXPECT_EQ(gone, 1);
  registry.load("a", command);
  registry.load("b", command);
  registry.unload_all(seconds(1), [&] { ++gone; });
  host.die(*host.children[1], {0, 0});
  EXPECT_EQ(gone, 1);
  host.die(*host.children[0], {0, 0});
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace bodega::registry
