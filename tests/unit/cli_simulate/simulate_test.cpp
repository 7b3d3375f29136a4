#include <gtest/gtest.h>

#include <sstream>

#include "../support/effort.h"
#include "base/errors.h"
#include "cli/simulate/fleet.h"
#include "cli/simulate/sim_report.h"
#include "cli/simulate/trace.h"
#include "cost/known_models.h"

namespace bodega::cli {
namespace {

SimConfig config(int blocks = 4000, const char* machine = "m4-max", const char* model = "8b") {
  SimConfig config;
  config.machine = *cost::find_machine(machine);
  config.work = *cost::find_model(model);
  config.blocks = blocks;
  config.limits.max_step_tokens = 2048;
  return config;
}

SimStats simulate(const SimConfig& config, std::string_view mix, double rate, int requests,
                  int machines = 1, Routing routing = Routing::kPrefix) {
  Fleet fleet(config, machines, routing);
  fleet.run(make_mix(mix, rate, requests, 5));
  return fleet.stats();
}

std::uint64_t again(const SimStats& stats) { return stats.computed_tokens - stats.new_tokens; }

TEST(Simulate, EveryRequestOfEveryMixIsAnswered) {
  for (const std::string_view mix : mix_names()) {
    const SimStats stats = simulate(config(), mix, 0.5, effort(400));
    EXPECT_EQ(stats.finished + stats.refused, static_cast<std::uint64_t>(effort(400))) << mix;
    EXPECT_EQ(stats.refused, 0U) << mix;
    EXPECT_EQ(stats.ttft.count(), stats.finished) << mix;
    EXPECT_GE(stats.prompt_tokens, stats.new_tokens) << mix;
  }
}

TEST(Simulate, TheSameSeedGivesTheSameResult) {
  SimConfig c = config(1000);
  c.disk_bytes = std::int64_t{8} << 30;
  EXPECT_EQ(to_text(simulate(c, "agents", 1, 300), 1), to_text(simulate(c, "agents", 1, 300), 1));
}

TEST(Simulate, APricedChunkKeepsTheGapThatAFixedOneBreaks) {
  SimConfig c = config(8000);
  const SimStats priced = simulate(c, "documents", 0.3, effort(300));
  c.fixed_chunk = 2048;
  const SimStats fixed = simulate(c, "documents", 0.3, effort(300));
  EXPECT_LT(priced.gap.quantile(0.99), 0.5 * fixed.gap.quantile(0.99));
}

// The number: at least 1.5 times fewer recomputed tokens with the pool at a tenth of the
// working set.
TEST(Simulate, TheLadderComputesLessAgainThanLruWithoutAnSsd) {
  constexpr int kRequests = 800;
  if (effort(kRequests) < kRequests) GTEST_SKIP() << "too slow here for as many as it takes";
  SimConfig ladder = config(1500);
  ladder.disk_bytes = std::int64_t{32} << 30;
  SimConfig lru = config(1500);
  lru.policy = cache::EvictionPolicy::kLeastRecent;
  const SimStats with_ladder = simulate(ladder, "agents", 0.1, kRequests);
  const SimStats with_lru = simulate(lru, "agents", 0.1, kRequests);
  EXPECT_LT(1.5 * static_cast<double>(again(with_ladder)), static_cast<double>(again(with_lru)));
  EXPECT_GT(with_ladder.restored_tokens, 0U);
}

TEST(Simulate, RoutingByPrefixFindsMoreThanRoutingAtRandom) {
  const SimConfig c = config(2000);
  const SimStats prefix = simulate(c, "chat", 8, effort(2000), 16);
  const SimStats random = simulate(c, "chat", 8, effort(2000), 16, Routing::kRandom);
  EXPECT_GT(prefix.hot_tokens, random.hot_tokens + random.hot_tokens / 4);
}

TEST(Simulate, AnOverloadedMachineRefusesInsteadOfQueueingForEver) {
  SimConfig c = config(2000, "m1-max", "70b");
  c.queue_size = 20;
  const SimStats stats = simulate(c, "chat", 20, 500);
  EXPECT_GT(stats.refused, 0U);
  EXPECT_EQ(stats.finished + stats.refused, 500U);
}

TEST(Simulate, ADayIsSimulated) {
  SimConfig c = config(4000);
  c.disk_bytes = std::int64_t{16} << 30;
  const SimStats stats = simulate(c, "chat", 0.2, effort(17'000));
  if (effort(20) == 20) {
    EXPECT_GT(stats.end_s, 80'000);
  }
  EXPECT_LE(stats.disk_bytes, c.disk_bytes);
}

TEST(Trace, LinesBecomeRequests) {
  auto lines = std::make_shared<std::istringstream>(
      "{\"arrival\": 0, \"blocks\": [1, 2, 3], \"output\": 5}\n\n"
      "{\"arrival\": 0.5, \"blocks\": [1, 2], \"output\": 7, \"prompt\": 20}\n");
  const SimSource source = read_trace(lines, 16);
  const auto first = source();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->prompt_tokens(), 49);  // the last token begins the answer
  const auto second = source();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->prompt_tokens(), 21);
  EXPECT_DOUBLE_EQ(second->arrival_s, 0.5);
  EXPECT_FALSE(source());
  EXPECT_EQ(sim_tokens(std::span(first->prompt).first(1)),
            sim_tokens(std::span(second->prompt).first(1)));
}

TEST(Trace, ABadLineIsNamed) {
  for (const char* line :
       {"no json", "[]", "{}", "{\"arrival\": -1, \"blocks\": [1], \"output\": 1}",
        "{\"arrival\": 1, \"blocks\": [], \"output\": 1}",
        "{\"arrival\": 1, \"blocks\": [\"a\"], \"output\": 1}",
        "{\"arrival\": 1, \"blocks\": [1], \"output\": 0}",
        "{\"arrival\": 1, \"blocks\": [1], \"output\": 1e12}",
        "{\"arrival\": 1, \"blocks\": [1], \"output\": 1, \"prompt\": 17}"}) {
    const SimSource source = read_trace(
        std::make_shared<std::istringstream>(
            std::string("{\"arrival\": 0, \"blocks\": [1], \"output\": 1}\n") + line + "\n"),
        16);
    EXPECT_TRUE(source());
    try {
      source();
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Line 2"), std::string::npos) << error.what();
    }
  }
}

TEST(Histogram, QuantilesAreWithinABucket) {
  Histogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(i * 1e-3);
  EXPECT_NEAR(histogram.quantile(0.5), 0.5, 0.02);
  EXPECT_NEAR(histogram.quantile(0.99), 0.99, 0.03);
}

}  // namespace
}  // namespace bodega::cli
