#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/block_pool.h"
#include "cache/prefix_index.h"

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

// The KV cache as the scheduler sees it: block tables that grow, share and let go.
// Two rules keep shared blocks unwritten: a block becomes findable only when all its positions were
// computed, and reuse and fork hand out whole blocks before the position that is written next.
class KvCache {
 public:
  struct Config {
    int blocks = 0;
    bool prefix_cache = true;
    std::string model_salt;  // models and adapters that must not share KV differ here
  };

  explicit KvCache(const Config& config, PrefixIndex::ChainHash chain_hash = &PrefixIndex::chain);

  // Fills an empty table with known blocks of `tokens`, at most `max_blocks` of them and never the
  // one with the final token, so that at least one token is left to compute. Returns tokens reused.
  int reuse(BlockTable& table, std::span<const TokenId> tokens, int max_blocks);
  // Gives the table blocks for `tokens` positions; all of them or none.
  bool grow(BlockTable& table, int tokens);
  // The first `computed` positions of `tokens` really are in the table's blocks: whole ones become
  // findable; one that another sequence published first is exchanged for the other's.
  void publish(BlockTable& table, std::span<const TokenId> tokens, int computed);
  // Shares the first `count` blocks of a table with an empty one.
  void fork(const BlockTable& from, BlockTable& to, int count);
  // Lets all blocks go, the last first, so that a prefix outlives what hangs on it.
  void drop(BlockTable& table);

  int available() const { return pool_.available(); }
  bool shares_prefixes() const { return config_.prefix_cache; }
  const BlockPool& pool() const { return pool_; }

  // Throws std::logic_error unless these tables and the index account for every block.
  void check(std::span<const BlockTable* const> tables) const;

 private:
  std::string salted(const BlockTable& table) const;

  Config config_;
  BlockPool pool_;
  PrefixIndex index_;
};

}  // namespace bodega::cache
