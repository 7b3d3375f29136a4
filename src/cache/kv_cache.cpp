#include "cache/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace bodega::cache {
namespace {

PrefixIndex::BlockTokens block_tokens(std::span<const TokenId> tokens, int block) {
  return tokens.subspan(static_cast<std::size_t>(block) * core::kBlockTokens)
      .first<core::kBlockTokens>();
}

}  // namespace

KvCache::KvCache(const Config& config, PrefixIndex::ChainHash chain_hash)
    : config_(config), pool_(config.blocks), index_(config.blocks, chain_hash) {}

// The length keeps ("ab", "c") and ("a", "bc") apart.
std::string KvCache::salted(const BlockTable& table) const {
  return std::to_string(config_.model_salt.size()) + ':' + config_.model_salt + table.salt;
}

int KvCache::reuse(BlockTable& table, std::span<const TokenId> tokens, int max_blocks) {
  assert(table.blocks.empty());
  table.cursor = PrefixIndex::root(salted(table));
  if (!config_.prefix_cache || tokens.empty()) return 0;
  const int whole = static_cast<int>(tokens.size() - 1) / core::kBlockTokens;
  for (int i = 0; i < std::min(whole, max_blocks); ++i) {
    const BlockId block = index_.find(table.cursor, block_tokens(tokens, i));
    if (block == kNoBlock) break;
    pool_.retain(block);
    table.blocks.push_back(block);
  }
  table.findable = static_cast<int>(table.blocks.size());
  return table.capacity();
}

bool KvCache::grow(BlockTable& table, int tokens) {
  const int missing = core::blocks_for(tokens) - static_cast<int>(table.blocks.size());
  if (missing > pool_.available()) return false;
  for (int i = 0; i < missing; ++i) {
    const std::optional<BlockPool::Allocation> taken = pool_.allocate();
    if (!taken) throw std::logic_error("kv cache: the pool has fewer blocks than it says");
    if (taken->was_findable) index_.erase(taken->block);
    table.blocks.push_back(taken->block);
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
    } else {
      pool_.retain(known);
      pool_.release(mine);
      mine = known;
    }
    ++table.findable;
  }
}

void KvCache::fork(const BlockTable& from, BlockTable& to, int count) {
  assert(to.blocks.empty() && count <= static_cast<int>(from.blocks.size()));
  to.blocks.assign(from.blocks.begin(), from.blocks.begin() + count);
  for (const BlockId block : to.blocks) pool_.retain(block);
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
    pool_.release(*block);
  }
  table = BlockTable(std::move(table.salt));
}

void KvCache::check(std::span<const BlockTable* const> tables) const {
  pool_.check();
  index_.check();
  std::vector<int> references(static_cast<std::size_t>(pool_.total()));
  for (const BlockTable* table : tables) {
    for (const BlockId block : table->blocks) ++references[static_cast<std::size_t>(block)];
  }
  for (BlockId block = 0; block < pool_.total(); ++block) {
    if (references[static_cast<std::size_t>(block)] != pool_.references(block)) {
      throw std::logic_error("kv cache: a block's reference count is not its number of users");
    }
    if (pool_.findable(block) != index_.contains(block)) {
      throw std::logic_error("kv cache: pool and index disagree on what is findable");
    }
    const BlockId parent = index_.contains(block) ? index_.parent(block) : kNoBlock;
    if (parent != kNoBlock && pool_.references(block) > 0 && pool_.references(parent) == 0) {
      throw std::logic_error("kv cache: a prefix could be evicted before what hangs on it");
    }
  }
}

}  // namespace bodega::cache
