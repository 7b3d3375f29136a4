// Warm equals cold to the bit when the prefix comes from the SSD, after a restart.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "engine/load.h"

namespace bodega::test {
namespace {

namespace fs = std::filesystem;

engine::LoadedModel load(const std::string& cache) {
  engine::LoadOptions options;
  options.path = BODEGA_TEST_MODEL;
  options.context_length = 1024;
  options.threads = 2;
  options.cache_folder = cache;
  options.ssd_bytes = std::int64_t{1} << 30;
  return engine::load_model(options);
}

struct Answer {
  std::vector<core::TokenLogprob> logprobs;
  int cached = 0;
};

Answer ask(engine::Engine& engine, const std::vector<core::TokenId>& prompt) {
  core::Request request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 5;
  request.stop.max_tokens = 6;
  request.stop.ignore_eos = true;
  Answer answer;
  std::promise<void> finished;
  engine.submit(request, [&](core::RequestOutput output) {
    for (core::ChoiceOutput& choice : output.choices) {
      for (auto& logprob : choice.logprobs) answer.logprobs.push_back(std::move(logprob));
    }
    answer.cached = output.usage.cached_tokens;
    if (output.finished) finished.set_value();
  });
  finished.get_future().wait();
  return answer;
}

TEST(Ssd, WarmFromTheSsdEqualsColdToTheBit) {
  const std::string cache = testing::TempDir() + "bodega_ssd_test";
  fs::remove_all(cache);
  std::vector<core::TokenId> prompt;
  for (int i = 0; i < 300; ++i) prompt.push_back(1000 + i * 37 % 20'000);
  Answer cold;
  {
    const engine::LoadedModel model = load(cache);
    cold = ask(*model.engine, prompt);
  }
  EXPECT_EQ(cold.cached, 0);
  const engine::LoadedModel model = load(cache);
  for (int i = 0; i < 1000 && model.engine->stats().disk_bytes == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Answer warm = ask(*model.engine, prompt);
  EXPECT_EQ(warm.cached, 288);
  EXPECT_EQ(model.engine->stats().restored_blocks, 18U);
  ASSERT_EQ(warm.logprobs.size(), cold.logprobs.size());
  for (std::size_t i = 0; i < warm.logprobs.size(); ++i) {
    EXPECT_EQ(warm.logprobs[i].id, cold.logprobs[i].id);
    EXPECT_EQ(warm.logprobs[i].logprob, cold.logprobs[i].logprob) << i;
    EXPECT_EQ(warm.logprobs[i].top, cold.logprobs[i].top) << i;
  }
  fs::remove_all(cache);
}

}  // namespace
}  // namespace bodega::test
