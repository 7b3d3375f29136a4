#include "cache/prefix_index.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bodega::cache {

PrefixIndex::PrefixIndex(int blocks, ChainHash chain_hash)
    : chain_hash_(chain_hash), entries_(static_cast<std::size_t>(blocks)) {}

Hash128 PrefixIndex::chain(const Hash128& parent, BlockTokens tokens) {
  std::array<std::byte, sizeof(Hash128) + core::kBlockTokens * sizeof(TokenId)> bytes;
  std::memcpy(bytes.data(), &parent, sizeof(parent));
  std::memcpy(bytes.data() + sizeof(parent), tokens.data(), tokens.size_bytes());
  return hash128(std::span<const std::byte>(bytes));
}

PrefixIndex::Cursor PrefixIndex::root(const std::string& salt) {
  return {0, hash128(std::string_view(salt)), salt};
}

bool PrefixIndex::matches(const Entry& entry, const Cursor& cursor, BlockTokens tokens) const {
  return entry.parent == cursor.entry && (entry.parent != 0 || entry.salt == cursor.salt) &&
         std::equal(tokens.begin(), tokens.end(), entry.tokens.begin());
}

BlockId PrefixIndex::find(Cursor& cursor, BlockTokens tokens) const {
  const Hash128 key = chain_hash_(cursor.key, tokens);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return kNoBlock;
  const Entry& entry = at(found->second);
  if (!matches(entry, cursor, tokens)) return kNoBlock;
  cursor.entry = entry.self;
  cursor.key = key;
  return found->second;
}

BlockId PrefixIndex::insert(Cursor& cursor, BlockTokens tokens, BlockId block) {
  const Hash128 key = chain_hash_(cursor.key, tokens);
  const auto [place, fresh] = by_key_.try_emplace(key, block);
  if (fresh) {
    Entry& entry = entries_[static_cast<std::size_t>(block)];
    const auto parent = cursor.entry == 0 ? by_key_.end() : by_key_.find(cursor.key);
    entry.self = next_++;
    entry.parent = cursor.entry;
    entry.parent_block = parent == by_key_.end() ? kNoBlock : parent->second;
    entry.parent_key = cursor.key;
    entry.key = key;
    if (entry.parent_block != kNoBlock) {
      Entry& before = entries_[static_cast<std::size_t>(entry.parent_block)];
      ++before.children;
      entry.depth = before.depth + 1;
    }
    std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
    if (cursor.entry == 0) entry.salt = cursor.salt;
  } else if (!matches(at(place->second), cursor, tokens)) {
    return kNoBlock;
  }
  cursor.entry = at(place->second).self;
  cursor.key = key;
  return place->second;
}

void PrefixIndex::erase(BlockId block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  if (entry.self == 0) return;
  by_key_.erase(entry.key);
  if (entry.parent_block != kNoBlock) {
    --entries_[static_cast<std::size_t>(entry.parent_block)].children;
  }
  entry = Entry{};
}

PrefixIndex::Cursor PrefixIndex::after(BlockId block, const std::string& salt) const {
  const Entry& entry = at(block);
  return {entry.self, entry.key, salt};
}

void PrefixIndex::check() const {
  std::size_t live = 0;
  std::vector<int> children(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.self == 0) continue;
    ++live;
    const auto found = by_key_.find(entry.key);
    if (found == by_key_.end() || found->second != static_cast<BlockId>(i)) {
      throw std::logic_error("prefix index: an entry is not found under its key");
    }
    if (entry.parent == 0) continue;
    if (entry.parent_block == kNoBlock || at(entry.parent_block).self != entry.parent) {
      throw std::logic_error("prefix index: an entry outlived its parent");
    }
    ++children[static_cast<std::size_t>(entry.parent_block)];
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (children[i] != entries_[i].children) {
      throw std::logic_error("prefix index: a wrong count of children");
    }
  }
  if (live != by_key_.size()) throw std::logic_error("prefix index: a key without an entry");
}

}  // namespace bodega::cache
