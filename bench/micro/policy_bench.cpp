// What the scheduler and the cache cost a step, without a model: 256 running sequences with
// contexts of about a thousand tokens beside 100,000 cached blocks.
#include <benchmark/benchmark.h>

#include <numeric>

#include "cost/known_models.h"
#include "schedule/scheduler.h"

namespace bodega {
namespace {

constexpr int kCachedBlocks = 100'000;
constexpr int kRunning = 256;
constexpr int kContext = 1000;

std::vector<core::TokenId> prompt_of(int tokens, int content) {
  std::vector<core::TokenId> prompt(static_cast<std::size_t>(tokens));
  std::iota(prompt.begin(), prompt.end(), content * 4096);
  return prompt;
}

class Load {
 public:
  Load()
      : prices_(*cost::find_machine("h200"), *cost::find_model("8b")),
        cache_(config(), &cache::PrefixIndex::chain, &prices_),
        scheduler_(limits(), cache_,
                   std::vector<core::BlockRef>(static_cast<std::size_t>(config().blocks)),
                   &prices_) {
    for (int filled = 0; filled < kCachedBlocks; filled += 64) cache_prompt(filled);
    for (int i = 0; i < kRunning; ++i) {
      scheduler_.add({.id = ++last_, .prompt = prompt_of(kContext + i, -1 - i)});
    }
    while (scheduler_.waiting() > 0 || !decoding_) step();
  }

  void step() {
    const schedule::StepPlan plan = scheduler_.schedule();
    decoding_ = true;
    for (const schedule::PlannedSlice& slice : plan.slices) {
      scheduler_.commit(slice);
      decoding_ = decoding_ && slice.rows == 1;
      if (slice.last_token) scheduler_.append(slice.id, static_cast<int>(slice.id) + ++token_ % 97);
    }
    rows_ = plan.batch.rows();
  }
  // One answer ends and another prompt, half of it known, takes its place.
  void replace() {
    scheduler_.remove(++oldest_);
    scheduler_.add(
        {.id = ++last_, .prompt = prompt_of(kContext, static_cast<int>(last_ % 1500) * 64)});
  }
  int rows() const { return rows_; }

 private:
  static cache::KvCache::Config config() {
    cache::KvCache::Config config;
    config.blocks = kCachedBlocks + kRunning * 100;
    return config;
  }
  static schedule::Limits limits() {
    schedule::Limits limits;
    limits.max_step_tokens = 2048;
    limits.max_sequences = kRunning;
    return limits;
  }
  void cache_prompt(int content) {
    cache::BlockTable table;
    const std::vector<core::TokenId> tokens = prompt_of(64 * core::kBlockTokens, content);
    cache_.reuse(table, tokens, 0);
    cache_.grow(table, static_cast<int>(tokens.size()));
    cache_.publish(table, tokens, static_cast<int>(tokens.size()));
    cache_.drop(table);
  }

  cost::CostModel prices_;
  cache::KvCache cache_;
  schedule::Scheduler scheduler_;
  schedule::SequenceId last_ = 0;
  schedule::SequenceId oldest_ = 0;
  int token_ = 0;
  int rows_ = 0;
  bool decoding_ = false;
};

void decode_step(benchmark::State& state) {
  Load load;
  for (auto _ : state) load.step();
  state.counters["rows"] = load.rows();
}
BENCHMARK(decode_step)->Iterations(400)->Unit(benchmark::kMicrosecond);

// Every eighth step one sequence leaves and one comes.
void step_with_arrivals(benchmark::State& state) {
  Load load;
  int step = 0;
  for (auto _ : state) {
    if (++step % 8 == 0) load.replace();
    load.step();
  }
  state.counters["rows"] = load.rows();
}
BENCHMARK(step_with_arrivals)->Iterations(400)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bodega

BENCHMARK_MAIN();
