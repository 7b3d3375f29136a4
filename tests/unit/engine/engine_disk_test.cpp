#include <chrono>
#include <thread>

#include "engine_harness.h"
#include "faulty_files.h"

namespace bodega::engine {
namespace {

using Fault = FaultyFiles::Fault;

// A pool that holds one of the prompts at a time, and an SSD below it.
class EngineDiskTest : public EngineTest {
 protected:
  static constexpr int kPoolBlocks = 40;
  static constexpr int kPrompts = 6;
  static constexpr int kPromptTokens = 300;

  EngineConfig with_disk() {
    EngineConfig c = config();
    c.disk_bytes = 100'000'000;
    c.disk_folder = "kv";
    c.disk_files = files_;
    return c;
  }
  // Every answer is what the definition says, from whichever rung its prefix came.
  int ask(Engine& engine, int prompt) {
    const core::Request r = request(prompt_of(kPromptTokens, prompt), 12);
    const Result result = run(engine, r);
    EXPECT_EQ(result.choices.at(0).tokens, model_answer(r, 0, {kEnd})) << prompt;
    return result.last.usage.cached_tokens;
  }
  // Asks for all prompts twice; returns how many tokens were not computed again.
  int two_rounds(Engine& engine) {
    int cached = 0;
    for (int round = 0; round < 2; ++round) {
      for (int prompt = 0; prompt < kPrompts; ++prompt) {
        cached += ask(engine, prompt);
        // Writing goes on while nothing runs.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    EXPECT_EQ(observer_->wrong_reads, 0);
    return cached;
  }

  std::shared_ptr<FaultyFiles> files_ = std::make_shared<FaultyFiles>();
};

TEST_F(EngineDiskTest, PrefixesThatLeftMemoryComeBackFromTheSsd) {
  auto engine = make(with_disk(), kPoolBlocks);
  EXPECT_GT(two_rounds(*engine), kPrompts * kPromptTokens / 2);
  EXPECT_GT(engine->stats().restored_blocks, 20U);
  EXPECT_GT(engine->stats().disk_bytes, 0);
  expect_all_blocks_back(*engine);
}

TEST_F(EngineDiskTest, ARestartKeepsTheStore) {
  {
    auto engine = make(with_disk(), kPoolBlocks);
    ask(*engine, 0);  // fits: it is written only when the engine ends
  }
  EXPECT_GT(files_->count(".kv"), 0U);
  auto engine = make(with_disk(), kPoolBlocks);
  eventually([&] { return engine->stats().disk_bytes > 0 || ask(*engine, 99) >= 0; });
  EXPECT_EQ(ask(*engine, 0), kPromptTokens / core::kBlockTokens * core::kBlockTokens);
  EXPECT_EQ(observer_->wrong_reads, 0);
}

TEST_F(EngineDiskTest, TwoEnginesShareOneStore) {
  auto first = make(with_disk(), kPoolBlocks);
  auto second = make(with_disk(), kPoolBlocks);
  for (int round = 0; round < 2; ++round) {
    two_rounds(*first);
    two_rounds(*second);
  }
  EXPECT_GT(first->stats().restored_blocks + second->stats().restored_blocks, 20U);
}

TEST_F(EngineDiskTest, AnotherBuildBelievesNothing) {
  {
    ask(*make(with_disk(), kPoolBlocks), 0);
  }
  EngineConfig other = with_disk();
  other.build = "another";
  auto engine = make(other, kPoolBlocks);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(ask(*engine, 0), 0);
}

TEST_F(EngineDiskTest, SwitchedOffNothingIsWritten) {
  EngineConfig off = with_disk();
  off.disk_bytes = 0;
  {
    auto engine = make(off, kPoolBlocks);
    two_rounds(*engine);
  }
  EXPECT_EQ(files_->count(".kv"), 0U);
}

TEST_F(EngineDiskTest, TheBudgetIsKept) {
  EngineConfig small = with_disk();
  small.disk_bytes = 30'000;
  auto engine = make(small, kPoolBlocks);
  two_rounds(*engine);
  EXPECT_LE(engine->stats().disk_bytes, 30'000);
  EXPECT_GT(engine->stats().spilled_blocks, 0U);
}

// Answers stay right and nothing hangs, whatever the disk does and whenever it begins to.
TEST_F(EngineDiskTest, NoFaultOfTheDiskIsAnError) {
  for (const Fault fault : {Fault::kFull, Fault::kNoRename, Fault::kShort, Fault::kDamaged,
                            Fault::kVanished, Fault::kSlow}) {
    SCOPED_TRACE(static_cast<int>(fault));
    files_ = std::make_shared<FaultyFiles>();
    auto engine = make(with_disk(), kPoolBlocks);
    two_rounds(*engine);
    files_->set(fault);
    two_rounds(*engine);
    files_->set(Fault::kNone);
    two_rounds(*engine);
    expect_all_blocks_back(*engine);
  }
}

// A request that waits for the SSD lets others run.
TEST_F(EngineDiskTest, OthersRunWhileAPrefixIsRead) {
  {
    ask(*make(with_disk(), kPoolBlocks), 0);
  }
  auto engine = make(with_disk(), kPoolBlocks);
  ask(*engine, 50);
  files_->set(Fault::kSlow);
  engine->submit(request(prompt_of(kPromptTokens, 0), 4), answers_.sink(1));
  engine->submit(request(prompt_of(20, 77), 4), answers_.sink(2));
  answers_.wait(2);
  EXPECT_TRUE(answers_.wait(1).finished);
  EXPECT_GT(answers_.now(1).last.usage.cached_tokens, 0);
}

TEST_F(EngineDiskTest, ACancelledReaderLeavesNothingBehind) {
  {
    ask(*make(with_disk(), kPoolBlocks), 0);
  }
  auto engine = make(with_disk(), kPoolBlocks);
  ask(*engine, 50);
  files_->set(Fault::kSlow);
  for (int i = 0; i < 10; ++i) {
    const auto id = engine->submit(request(prompt_of(kPromptTokens, 0), 4), answers_.sink(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    engine->cancel(id);
  }
  eventually([&] { return engine->stats().running + engine->stats().waiting == 0; });
  files_->set(Fault::kNone);
  ask(*engine, 0);
  ask(*engine, 1);
  EXPECT_EQ(observer_->wrong_reads, 0);
  expect_all_blocks_back(*engine);
}

}  // namespace
}  // namespace bodega::engine
