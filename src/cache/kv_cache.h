#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/block_pool.h"
#include "cache/ladder.h"
#include "cache/prefix_index.h"
#include "cache/transfers.h"

namespace bodega::cache {

// The blocks of one sequence, in the order of their positions. Only a KvCache changes it.
struct BlockTable {
  explicit BlockTable(std::string cache_salt = {}) : salt(std::move(cache_salt)) {}

  std::vector<BlockId> blocks;
  std::string salt;
  int findable = 0;            // leading blocks that are in the index: never written again
  bool publishes = true;       // false once another prefix owned the key of one of its blocks
  PrefixIndex::Cursor cursor;  // just behind the findable blocks

  int capacity() const { return static_cast<int>(blocks.size()) * core::kBlockTokens; }
};

// Since start, for /metrics.
struct CacheCounters {
  std::uint64_t hot_blocks = 0;       // reused from memory
  std::uint64_t restored_blocks = 0;  // read from the SSD
  std::uint64_t spilled_blocks = 0;   // written to it
  std::uint64_t evicted_blocks = 0;   // gone from memory
  std::uint64_t bad_blocks = 0;       // on the SSD, but not to be believed
};

// The KV cache as the scheduler sees it: block tables that grow, share and let go, and the rungs
// below: blocks that nobody holds stay findable, the SSD keeps what is worth it, the rest is gone.
// Two rules keep shared blocks unwritten: a block becomes findable only when all its positions were
// computed, and reuse and fork hand out whole blocks before the position that is written next.
class KvCache {
 public:
  struct Config {
    int blocks = 0;
    bool prefix_cache = true;
    std::string model_salt;  // models and adapters that must not share KV differ here
    Ladder::Config ladder{};
    int blocks_per_file = 1;
  };

  explicit KvCache(const Config& config, PrefixIndex::ChainHash chain_hash = &PrefixIndex::chain,
                   const cost::CostModel* prices = nullptr);
  KvCache(const KvCache&) = delete;  // the ladder looks into the index
  KvCache& operator=(const KvCache&) = delete;

  // Fills an empty table with known blocks of `tokens`, at most `max_blocks` of them and never the
  // one with the final token, so that at least one token is left to compute. Returns tokens reused.
  int reuse(BlockTable& table, std::span<const TokenId> tokens, int max_blocks);
  // The request of this table really starts with what reuse() found: counted as used from now on.
  void count_reuse(const BlockTable& table);
  // Gives the table blocks for `tokens` positions; all of them or none.
  bool grow(BlockTable& table, int tokens);
  // The first `computed` positions of `tokens` really are in the table's blocks: whole ones become
  // findable; one that another sequence published first is exchanged for the other's.
  void publish(BlockTable& table, std::span<const TokenId> tokens, int computed);
  // Shares the first `count` blocks of a table with an empty one.
  void fork(const BlockTable& from, BlockTable& to, int count);
  // Lets all blocks go, the last first, so that a prefix outlives what hangs on it.
  void drop(BlockTable& table);

  // --- The SSD rung. Whoever calls these moves the bytes. ---

  // What follows the table's findable blocks on the SSD, when reading it is predicted to be faster
  // than computing it. The table has blocks for it; they must not be written before restored().
  std::optional<RestoreJob> plan_restore(const BlockTable& table, std::span<const TokenId> tokens,
                                         int max_blocks);
  // The transfer has ended: its first `good` blocks hold what was asked for, and the file of the
  // next one, if any, is not to be believed. Blocks whose table was dropped meanwhile become free.
  void restored(const RestoreJob& job, int good);
  // The next blocks to write while few can go without it, or with `all`, until none is left.
  std::optional<SpillJob> plan_spill(bool all);
  void spilled(const SpillJob& job, bool written, std::int64_t file_bytes);
  // A file to delete, because the budget is full; it is forgotten already.
  std::optional<Hash128> plan_delete();
  // A file that is on the disk since before, or from another process.
  void found_file(const Hash128& name, std::span<const Hash128> keys, std::int64_t bytes);

  // --- Memory given back to the system, and taken again. ---

  // Takes a block out of use, an idle one where none is free; kNoBlock when all are held.
  BlockId retire_block();
  BlockId revive_block() { return pool_.revive(); }

  int available() const { return pool_.available(); }
  // Whether to wait with taking `blocks`: they would have to be taken from what the SSD should
  // have, and it is being written, or can be. Asks for that to be done soon.
  bool wait_for_room(int blocks);
  void allow_writes(bool allowed) { writes_allowed_ = allowed; }  // false: the disk fails
  bool room_wanted() const { return room_wanted_ > 0; }
  bool shares_prefixes() const { return config_.prefix_cache; }
  const BlockPool& pool() const { return pool_; }
  const Ladder& ladder() const { return ladder_; }
  const CacheCounters& counters() const { return counters_; }
  int transfers() const { return transfers_; }

  // Throws std::logic_error unless these tables, transfers and the index account for every block.
  void check(std::span<const BlockTable* const> tables) const;

 private:
  std::string salted(const BlockTable& table) const;
  void retain(BlockId block);
  void release(BlockId block, bool refresh = true);
  bool evict_one();
  void forget_pinned_leaf();
  void forget(BlockId block);
  void pin(std::span<const BlockId> blocks, bool hold);

  Config config_;
  const cost::CostModel* prices_;
  BlockPool pool_;
  PrefixIndex index_;
  Ladder ladder_;
  CacheCounters counters_;
  std::unordered_map<BlockId, int> pins_;  // references that transfers hold
  TransferId last_transfer_ = kNoTransfer;
  int transfers_ = 0;  // planned and not ended
  int spilling_ = 0;   // of them, writes
  int room_wanted_ = 0;
  bool writes_allowed_ = true;
};

}  // namespace bodega::cache
