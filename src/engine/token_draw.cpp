#include "engine/token_draw.h"

#include <algorithm>
#include <exception>

#include "sample/logprobs.h"

namespace bodega::engine {
namespace {

// Passing over this many logits with an exponential each takes longer than waking a thread.
constexpr std::size_t kWorthThreads = 200'000;

std::size_t costly_logits(std::span<const TokenDraw> draws) {
  std::size_t sum = 0;
  for (const TokenDraw& draw : draws) {
    const core::SamplingParams& params = *draw.row.params;
    if (!params.greedy() || params.logprobs) sum += draw.row.logits.size();
  }
  return sum;
}

}  // namespace

TokenDrawer::TokenDrawer(int threads)
    : threads_(std::max(threads, 1)), samplers_(static_cast<std::size_t>(threads_)) {}

void TokenDrawer::draw(std::span<TokenDraw> draws) {
  if (threads_ == 1 || draws.size() < 2 || costly_logits(draws) < kWorthThreads) {
    for (TokenDraw& draw : draws) draw_one(draw, samplers_.front());
    return;
  }
  struct Context {
    std::span<TokenDraw> draws;
    std::vector<sample::Sampler>& samplers;
  } context{draws, samplers_};
  const ThreadPool::Phase phase{static_cast<int>(draws.size()),
                                [](const void* opaque, int chunk, int worker) {
                                  const auto& c = *static_cast<const Context*>(opaque);
                                  draw_one(c.draws[static_cast<std::size_t>(chunk)],
                                           c.samplers[static_cast<std::size_t>(worker)]);
                                },
                                &context};
  pool().run({&phase, 1});
}

void TokenDrawer::for_each(int count, const std::function<void(int)>& work) {
  if (threads_ == 1 || count < 2) {
    for (int i = 0; i < count; ++i) work(i);
    return;
  }
  const ThreadPool::Phase phase{count,
                                [](const void* opaque, int chunk, int /*worker*/) {
                                  (*static_cast<const std::function<void(int)>*>(opaque))(chunk);
                                },
                                &work};
  pool().run({&phase, 1});
}

ThreadPool& TokenDrawer::pool() {
  if (pool_ == nullptr) pool_ = std::make_unique<ThreadPool>(threads_);
  return *pool_;
}

void TokenDrawer::draw_one(TokenDraw& draw, sample::Sampler& sampler) noexcept {
  if (!draw.error.empty()) return;
  try {
    const core::SamplingParams& params = *draw.row.params;
    draw.token.id = draw.scripted ? *draw.scripted : sampler.sample(draw.row);
    if (params.logprobs) {
      draw.token = sample::token_logprob(draw.row.logits, draw.token.id, params.top_logprobs);
    }
  } catch (const std::exception& error) {
    draw.error = error.what();
  }
}

}  // namespace bodega::engine
