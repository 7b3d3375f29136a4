#include "cache/ladder.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace bodega::cache {
namespace {

constexpr std::int32_t kMostUses = 64;
constexpr std::int64_t kUnpricedNs = 1'000'000;

std::int64_t to_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

Ladder::Ladder(int blocks, const Config& config, const PrefixIndex& index,
               const cost::CostModel* prices)
    : config_(config),
      index_(index),
      prices_(prices),
      disk_(config.disk_bytes),
      ghosts_(blocks),
      states_(static_cast<std::size_t>(blocks)),
      leaves_(blocks),
      writable_(blocks) {}

std::int64_t Ladder::recompute_ns(BlockId block) const {
  if (prices_ == nullptr) return kUnpricedNs;
  return to_ns(
      prices_->recompute_seconds(index_.depth(block) * core::kBlockTokens, core::kBlockTokens));
}

// Blocks are read several at a time, so a block's share of the disk's latency is left out.
std::int64_t Ladder::reload_ns() const {
  if (prices_ == nullptr || !prices_->machine().has_ssd()) return kUnpricedNs / 10;
  return to_ns(static_cast<double>(prices_->work().block_bytes) / prices_->machine().ssd_read);
}

std::int64_t Ladder::worth(BlockId block) const {
  const State& state = at(block);
  if (config_.policy != EvictionPolicy::kWorth) return state.base;
  std::int64_t saves = recompute_ns(block);
  if (has_disk() && disk_.find(index_.key(block))) saves = std::min(saves, reload_ns());
  return state.base + saves * std::bit_width(static_cast<unsigned>(state.uses));
}

bool Ladder::should_write(BlockId block) const {
  return has_disk() && !disk_.find(index_.key(block)) && reload_ns() < recompute_ns(block);
}

// Counts a block behind `parent` that may not go without a write, or that may now.
void Ladder::open(BlockId parent, int change) {
  if (parent == kNoBlock) return;
  at(parent).open_children += change;
  consider_writing(parent);
}

void Ladder::consider_writing(BlockId block) {
  const State& state = at(block);
  const bool writable = state.idle && !state.clean && state.open_children == 0;
  if (writable == writable_.contains(block)) return;
  if (writable) {
    writable_.insert(block, worth(block));
  } else {
    writable_.erase(block);
  }
}

void Ladder::published(BlockId block) {
  State& state = at(block);
  state = State{};
  state.base = config_.policy == EvictionPolicy::kFirstIn ? ++clock_ : clock_;
  state.uses = std::min(kMostUses, 1 + ghosts_.uses(index_.key(block)));
  open(index_.parent(block), 1);
}

void Ladder::used(BlockId block) {
  State& state = at(block);
  state.uses = std::min(kMostUses, state.uses + 1);
  saved_ns_ += static_cast<std::uint64_t>(recompute_ns(block));
}

void Ladder::idle(BlockId block, bool refresh) {
  State& state = at(block);
  state.idle = true;
  if (refresh && config_.policy == EvictionPolicy::kWorth) state.base = clock_;
  if (refresh && config_.policy == EvictionPolicy::kLeastRecent) state.base = ++clock_;
  state.clean = !should_write(block);
  if (state.clean) {
    ++clean_count_;
    open(index_.parent(block), -1);
  }
  consider_writing(block);
  if (index_.children(block) == 0) leaves_.insert(block, worth(block));
}

void Ladder::held(BlockId block) {
  State& state = at(block);
  leaves_.erase(block);
  state.idle = false;
  if (state.clean) {
    --clean_count_;
    state.clean = false;
    open(index_.parent(block), 1);
  }
  consider_writing(block);
}

void Ladder::evicted(BlockId block) {
  if (config_.policy == EvictionPolicy::kWorth && at(block).idle) {
    clock_ = std::max(clock_, worth(block));
  }
  ghosts_.remember(index_.key(block), at(block).uses);
  held(block);
  open(index_.parent(block), -1);
}

void Ladder::uncovered(BlockId block) { leaves_.insert(block, worth(block)); }

BlockId Ladder::victim() const { return leaves_.empty() ? kNoBlock : leaves_.first(); }

BlockId Ladder::next_to_write() const { return writable_.empty() ? kNoBlock : writable_.first(); }

void Ladder::check(const BlockPool& pool) const {
  leaves_.check();
  writable_.check();
  disk_.check();
  int clean = 0;
  std::vector<int> open(states_.size());
  for (BlockId block = 0; block < pool.total(); ++block) {
    const State& state = at(block);
    const bool idle = pool.references(block) == 0 && pool.findable(block);
    if (state.idle != idle || (state.clean && !idle)) {
      throw std::logic_error("ladder: it is wrong about who is idle");
    }
    clean += state.clean ? 1 : 0;
    if (leaves_.contains(block) != (idle && index_.children(block) == 0)) {
      throw std::logic_error("ladder: the order does not hold exactly the idle leaves");
    }
    const BlockId parent = pool.findable(block) ? index_.parent(block) : kNoBlock;
    if (parent != kNoBlock && !state.clean) ++open[static_cast<std::size_t>(parent)];
  }
  for (BlockId block = 0; block < pool.total(); ++block) {
    const State& state = at(block);
    if (!pool.findable(block)) continue;
    if (state.open_children != open[static_cast<std::size_t>(block)] ||
        writable_.contains(block) != (state.idle && !state.clean && state.open_children == 0)) {
      throw std::logic_error("ladder: it is wrong about what can be written");
    }
  }
  if (clean != clean_count_) throw std::logic_error("ladder: wrong count of clean blocks");
}

}  // namespace bodega::cache
