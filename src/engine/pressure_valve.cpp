#include "engine/pressure_valve.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bodega::engine {
namespace {

constexpr double kLookEveryS = 1;
constexpr double kIdleLookS = 5;
constexpr double kCalmS = 10;
constexpr int kStepShare = 32;  // of the pool, a look
constexpr int kCriticalShare = 4;

}  // namespace

PressureValve::PressureValve(cache::KvCache& cache, Runner& runner, Signal signal, int least_blocks)
    : cache_(cache), runner_(runner), signal_(std::move(signal)), least_blocks_(least_blocks) {}

void PressureValve::poll(double now_s) {
  if (!signal_ || now_s < looked_s_ + kLookEveryS) return;
  looked_s_ = now_s;
  level_ = signal_();
  const int total = cache_.pool().total();
  if (level_ == MemoryPressure::kNone) {
    if (now_s >= pressed_s_ + kCalmS) take_again(std::max(1, total / kStepShare));
    return;
  }
  pressed_s_ = now_s;
  give_back(std::max(1, total / (level_ == MemoryPressure::kSome ? kStepShare : kCriticalShare)));
}

void PressureValve::give_back(int blocks) {
  for (; blocks > 0; --blocks) {
    if (cache_.pool().total() - cache_.pool().retired() <= least_blocks_) return;
    const cache::BlockId block = cache_.retire_block();
    if (block == cache::kNoBlock) return;
    runner_.release_memory(block);
  }
}

void PressureValve::take_again(int blocks) {
  while (blocks-- > 0 && cache_.revive_block() != cache::kNoBlock) continue;
}

double PressureValve::next_look_s() const {
  const bool watches = cache_.pool().available() > 0 || cache_.pool().retired() > 0;
  if (!signal_ || !watches) return std::numeric_limits<double>::infinity();
  return looked_s_ + kIdleLookS;
}

}  // namespace bodega::engine
