#include <algorithm>

#include "cache/block_tokens.h"
#include "cache/kv_cache.h"

// The SSD rung of the KvCache: what to write, read, delete and believe.
namespace bodega::cache {
namespace {

// While fewer blocks than this share of the pool can be handed out without losing one that the SSD
// should have, writing goes on.
constexpr int kReadyShare = 4;

// In nanoseconds when they are known, else reading wins.
bool reading_is_faster(const cost::CostModel* prices, int position, int blocks) {
  if (prices == nullptr || !prices->machine().has_ssd()) return true;
  const std::int64_t bytes = prices->work().block_bytes * blocks;
  return prices->reload_seconds(bytes) <
         prices->recompute_seconds(position, blocks * core::kBlockTokens);
}

Hash128 name_of(std::span<const StoredBlock> blocks) {
  Hasher128 hasher;
  for (const StoredBlock& block : blocks) hasher.add(block.key.high).add(block.key.low);
  return hasher.finish();
}

}  // namespace

void KvCache::pin(std::span<const BlockId> blocks, bool hold) {
  // Released last first, as tables are, so that leaves enter the order before what they cover.
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockId block = blocks[hold ? i : blocks.size() - 1 - i];
    if (hold) {
      retain(block);
      ++pins_[block];
    } else {
      if (--pins_[block] == 0) pins_.erase(block);
      release(block, false);
    }
  }
}

std::optional<RestoreJob> KvCache::plan_restore(const BlockTable& table,
                                                std::span<const TokenId> tokens, int max_blocks) {
  if (!ladder_.has_disk() || !config_.prefix_cache || tokens.empty() || !table.publishes) {
    return std::nullopt;
  }
  const int whole = static_cast<int>(tokens.size() - 1) / core::kBlockTokens;
  const int end = std::min({whole, max_blocks, static_cast<int>(table.blocks.size())});
  RestoreJob job;
  Hash128 parent = table.cursor.key;
  for (int i = table.findable; i < end; ++i) {
    const PrefixIndex::BlockTokens wanted = block_tokens(tokens, i);
    RestoreJob::Part part;
    part.expected = {index_.key_behind(parent, wanted), parent, {}};
    const std::optional<DiskSlot> slot = ladder_.disk().find(part.expected.key);
    if (!slot) break;
    std::copy(wanted.begin(), wanted.end(), part.expected.tokens.begin());
    part.slot = *slot;
    part.file = ladder_.disk().name(slot->file);
    part.block = table.blocks[static_cast<std::size_t>(i)];
    parent = part.expected.key;
    job.parts.push_back(part);
  }
  const int blocks = static_cast<int>(job.parts.size());
  if (blocks == 0 || !reading_is_faster(prices_, table.findable * core::kBlockTokens, blocks)) {
    return std::nullopt;
  }
  job.id = ++last_transfer_;
  ++transfers_;
  for (const RestoreJob::Part& part : job.parts) pin({&part.block, 1}, true);
  return job;
}

void KvCache::restored(const RestoreJob& job, int good) {
  --transfers_;
  counters_.restored_blocks += static_cast<std::uint64_t>(good);
  DiskFileId last = kNoFile;
  for (int i = 0; i < good; ++i) {
    const DiskFileId file = job.parts[static_cast<std::size_t>(i)].slot.file;
    if (file != last) ladder_.disk().used(file);
    last = file;
  }
  if (good < static_cast<int>(job.parts.size())) {
    ladder_.disk().remove(job.parts[static_cast<std::size_t>(good)].slot.file);
    ++counters_.bad_blocks;
  }
  for (auto part = job.parts.rbegin(); part != job.parts.rend(); ++part) {
    pin({&part->block, 1}, false);
  }
}

bool KvCache::wait_for_room(int blocks) {
  const bool short_of_room = blocks > pool_.free() + ladder_.clean();
  const bool can_write = ladder_.has_disk() && writes_allowed_ &&
                         (spilling_ > 0 || ladder_.next_to_write() != kNoBlock);
  room_wanted_ = short_of_room && can_write ? blocks : 0;
  return room_wanted_ > 0;
}

std::optional<SpillJob> KvCache::plan_spill(bool all) {
  if (!ladder_.has_disk()) return std::nullopt;
  const int wanted = std::max(room_wanted_, pool_.total() / kReadyShare);
  if (!all && pool_.free() + ladder_.clean() >= wanted) return std::nullopt;
  BlockId block = ladder_.next_to_write();
  if (block == kNoBlock) return std::nullopt;
  SpillJob job;
  // The leaf, and as much of the way to it as would become a leaf after it.
  while (block != kNoBlock && static_cast<int>(job.blocks.size()) < config_.blocks_per_file) {
    const bool only_way = job.blocks.empty() || ladder_.open_children(block) == 1;
    if (!only_way || pool_.references(block) > 0 || !ladder_.should_write(block)) break;
    job.blocks.push_back(block);
    block = index_.parent(block);
  }
  if (job.blocks.empty()) return std::nullopt;
  std::reverse(job.blocks.begin(), job.blocks.end());
  for (const BlockId b : job.blocks) {
    StoredBlock stored{index_.key(b), index_.parent_key(b), {}};
    const PrefixIndex::BlockTokens tokens = index_.tokens(b);
    std::copy(tokens.begin(), tokens.end(), stored.tokens.begin());
    job.stored.push_back(stored);
  }
  job.id = ++last_transfer_;
  job.name = name_of(job.stored);
  ++transfers_;
  ++spilling_;
  pin(job.blocks, true);
  return job;
}

void KvCache::spilled(const SpillJob& job, bool written, std::int64_t file_bytes) {
  --transfers_;
  --spilling_;
  if (written) {
    std::vector<Hash128> keys;
    for (const StoredBlock& stored : job.stored) keys.push_back(stored.key);
    ladder_.disk().add(job.name, keys, file_bytes);
    counters_.spilled_blocks += job.blocks.size();
  }
  pin(job.blocks, false);
}

std::optional<Hash128> KvCache::plan_delete() {
  const std::optional<DiskFileId> file = ladder_.disk().over_budget();
  if (!file) return std::nullopt;
  const Hash128 name = ladder_.disk().name(*file);
  ladder_.disk().remove(*file);
  return name;
}

void KvCache::found_file(const Hash128& name, std::span<const Hash128> keys, std::int64_t bytes) {
  ladder_.disk().add(name, keys, bytes);
}

}  // namespace bodega::cache
