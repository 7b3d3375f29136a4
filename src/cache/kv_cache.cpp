#include "cache/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "cache/block_tokens.h"

namespace bodega::cache {

KvCache::KvCache(const Config& config, PrefixIndex::ChainHash chain_hash,
                 const cost::CostModel* prices)
    : config_(config),
      prices_(prices),
      pool_(config.blocks),
      index_(config.blocks, chain_hash),
      ladder_(config.blocks, config.ladder, index_, prices) {}

// The length keeps ("ab", "c") and ("a", "bc") apart.
std::string KvCache::salted(const BlockTable& table) const {
  return std::to_string(config_.model_salt.size()) + ':' + config_.model_salt + table.salt;
}

void KvCache::retain(BlockId block) {
  if (pool_.references(block) == 0) ladder_.held(block);
  pool_.retain(block);
}

void KvCache::release(BlockId block, bool refresh) {
  pool_.release(block);
  if (pool_.references(block) == 0 && pool_.findable(block)) ladder_.idle(block, refresh);
}

// Forgets the idle block that is worth least; its memory is free then. False when all are held.
bool KvCache::evict_one() {
  if (pool_.idle() == 0) return false;
  // What lies behind an idle block but is not idle is only being written: no table holds it.
  while (ladder_.victim() == kNoBlock) forget_pinned_leaf();
  forget(ladder_.victim());
  ++counters_.evicted_blocks;
  return true;
}

void KvCache::forget_pinned_leaf() {
  const auto leaf = std::find_if(pins_.begin(), pins_.end(), [this](const auto& pin) {
    const auto [block, count] = pin;
    return pool_.findable(block) && pool_.references(block) == count && index_.children(block) == 0;
  });
  if (leaf == pins_.end()) throw std::logic_error("kv cache: idle blocks, but none can go");
  forget(leaf->first);
}

// Takes a leaf out of the index.
void KvCache::forget(BlockId block) {
  const BlockId parent = index_.parent(block);
  ladder_.evicted(block);
  index_.erase(block);
  pool_.set_findable(block, false);
  if (parent != kNoBlock && pool_.references(parent) == 0 && index_.children(parent) == 0) {
    ladder_.uncovered(parent);
  }
}

int KvCache::reuse(BlockTable& table, std::span<const TokenId> tokens, int max_blocks) {
  assert(table.blocks.empty());
  table.cursor = PrefixIndex::root(salted(table));
  if (!config_.prefix_cache || tokens.empty()) return 0;
  const int whole = static_cast<int>(tokens.size() - 1) / core::kBlockTokens;
  for (int i = 0; i < std::min(whole, max_blocks); ++i) {
    const BlockId block = index_.find(table.cursor, block_tokens(tokens, i));
    if (block == kNoBlock) break;
    retain(block);
    table.blocks.push_back(block);
  }
  table.findable = static_cast<int>(table.blocks.size());
  return table.capacity();
}

void KvCache::count_reuse(const BlockTable& table) {
  for (int i = 0; i < table.findable; ++i) ladder_.used(table.blocks[static_cast<std::size_t>(i)]);
  counters_.hot_blocks += static_cast<std::uint64_t>(table.findable);
}

bool KvCache::grow(BlockTable& table, int tokens) {
  const int missing = core::blocks_for(tokens) - static_cast<int>(table.blocks.size());
  if (missing > pool_.available()) return false;
  for (int i = 0; i < missing; ++i) {
    if (pool_.free() == 0) evict_one();
    table.blocks.push_back(pool_.allocate());
  }
  return true;
}

void KvCache::publish(BlockTable& table, std::span<const TokenId> tokens, int computed) {
  if (!config_.prefix_cache) return;
  while (table.publishes && (table.findable + 1) * core::kBlockTokens <= computed) {
    BlockId& mine = table.blocks[static_cast<std::size_t>(table.findable)];
    const BlockId known = index_.insert(table.cursor, block_tokens(tokens, table.findable), mine);
    if (known == kNoBlock) {
      table.publishes = false;
      return;
    }
    if (known == mine) {
      pool_.set_findable(mine, true);
      ladder_.published(mine);
    } else {
      retain(known);
      release(mine);
      mine = known;
    }
    ++table.findable;
  }
}

void KvCache::fork(const BlockTable& from, BlockTable& to, int count) {
  assert(to.blocks.empty() && count <= static_cast<int>(from.blocks.size()));
  to.blocks.assign(from.blocks.begin(), from.blocks.begin() + count);
  for (const BlockId block : to.blocks) retain(block);
  to.findable = std::min(count, from.findable);
  const std::string salt = salted(to);
  to.cursor = to.findable == 0
                  ? PrefixIndex::root(salt)
                  : index_.after(to.blocks[static_cast<std::size_t>(to.findable - 1)], salt);
  // Blocks behind the findable ones are shared with `from`, which publishes them.
  to.publishes = to.findable == count && from.publishes;
}

void KvCache::drop(BlockTable& table) {
  for (auto block = table.blocks.rbegin(); block != table.blocks.rend(); ++block) {
    release(*block);
  }
  table = BlockTable(std::move(table.salt));
}

BlockId KvCache::retire_block() {
  if (pool_.free() == 0) evict_one();
  return pool_.retire();
}

void KvCache::check(std::span<const BlockTable* const> tables) const {
  pool_.check();
  index_.check();
  ladder_.check(pool_);
  std::vector<int> references(static_cast<std::size_t>(pool_.total()));
  for (const BlockTable* table : tables) {
    for (const BlockId block : table->blocks) ++references[static_cast<std::size_t>(block)];
  }
  for (const auto& [block, count] : pins_) references[static_cast<std::size_t>(block)] += count;
  for (BlockId block = 0; block < pool_.total(); ++block) {
    if (references[static_cast<std::size_t>(block)] != pool_.references(block)) {
      throw std::logic_error("kv cache: a block's reference count is not its number of users");
    }
    if (pool_.findable(block) != index_.contains(block)) {
      throw std::logic_error("kv cache: pool and index disagree on what is findable");
    }
    const BlockId parent = index_.contains(block) ? index_.parent(block) : kNoBlock;
    const bool in_tables = pool_.references(block) > (pins_.contains(block) ? pins_.at(block) : 0);
    if (parent != kNoBlock && in_tables && pool_.references(parent) == 0) {
      throw std::logic_error("kv cache: a prefix could be evicted before what hangs on it");
    }
  }
}

}  // namespace bodega::cache
