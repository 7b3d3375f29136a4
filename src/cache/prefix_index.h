#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "cache/block_pool.h"
#include "core/batch.h"

namespace bodega::cache {

using core::TokenId;

// Finds the block that holds the KV of a given run of tokens behind a given prefix. Keys are
// XXH3-128 chained over blocks, salted by model and cache_salt, so they mean the same in another
// process. A key alone is never believed: an entry also names its tokens and its parent entry,
// whose own tokens were compared on the way, so equal entries mean equal prefixes.
class PrefixIndex {
 public:
  using EntryId = std::uint64_t;  // never used twice; 0 is the root
  using BlockTokens = std::span<const TokenId, core::kBlockTokens>;
  using ChainHash = Hash128 (*)(const Hash128& parent, BlockTokens tokens);

  // A place in the tree: the prefix walked so far.
  struct Cursor {
    EntryId entry = 0;
    Hash128 key;
    std::string salt;
  };

  // `chain_hash` is replaced only by tests that force collisions.
  explicit PrefixIndex(int blocks, ChainHash chain_hash = &PrefixIndex::chain);

  static Hash128 chain(const Hash128& parent, BlockTokens tokens);
  static Cursor root(const std::string& salt);

  // The block behind the cursor that holds `tokens`; moves the cursor past it. kNoBlock: a miss.
  BlockId find(Cursor& cursor, BlockTokens tokens) const;

  // Makes `block` findable as `tokens` behind the cursor and moves the cursor past it. Returns
  // `block`, or the block that already holds the same, or kNoBlock when another prefix owns the
  // key.
  BlockId insert(Cursor& cursor, BlockTokens tokens, BlockId block);
  void erase(BlockId block);

  bool contains(BlockId block) const { return at(block).self != 0; }
  // The place just behind a findable block.
  Cursor after(BlockId block, const std::string& salt) const;
  // The findable block before this one; kNoBlock at the root.
  BlockId parent(BlockId block) const { return at(block).parent_block; }
  int children(BlockId block) const { return at(block).children; }  // findable blocks behind it
  int depth(BlockId block) const { return at(block).depth; }        // blocks before it
  const Hash128& key(BlockId block) const { return at(block).key; }
  const Hash128& parent_key(BlockId block) const { return at(block).parent_key; }
  BlockTokens tokens(BlockId block) const { return at(block).tokens; }
  Hash128 key_behind(const Hash128& parent, BlockTokens tokens) const {
    return chain_hash_(parent, tokens);
  }
  int size() const { return static_cast<int>(by_key_.size()); }

  // Throws std::logic_error when keys and entries disagree or an entry's parent is gone.
  void check() const;

 private:
  struct Entry {
    EntryId self = 0;  // 0: the block is not findable
    EntryId parent = 0;
    BlockId parent_block = kNoBlock;
    std::int32_t children = 0;
    std::int32_t depth = 0;
    Hash128 key;
    Hash128 parent_key;
    std::array<TokenId, core::kBlockTokens> tokens{};
    std::string salt;  // of root entries; deeper ones inherit it through their parent
  };

  const Entry& at(BlockId block) const { return entries_[static_cast<std::size_t>(block)]; }
  bool matches(const Entry& entry, const Cursor& cursor, BlockTokens tokens) const;

  ChainHash chain_hash_;
  std::vector<Entry> entries_;  // [blocks]
  std::unordered_map<Hash128, BlockId, Hash128Hasher> by_key_;
  EntryId next_ = 1;
};

}  // namespace bodega::cache
