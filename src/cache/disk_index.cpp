#include "cache/disk_index.h"

#include <algorithm>
#include <stdexcept>

namespace bodega::cache {

void DiskIndex::rank(DiskFileId id, File& file) {
  order_.erase({file.worth, id});
  file.worth = clock_ + file.uses;
  order_.emplace(file.worth, id);
}

DiskFileId DiskIndex::add(const Hash128& name, std::span<const Hash128> keys, std::int64_t bytes) {
  const auto [known, fresh] = names_.try_emplace(name, last_ + 1);
  if (!fresh) return known->second;
  const DiskFileId id = ++last_;
  File& file = files_[id];
  file.name = name;
  file.keys.assign(keys.begin(), keys.end());
  file.bytes = bytes;
  bytes_ += bytes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    slots_.try_emplace(keys[i], DiskSlot{id, static_cast<int>(i)});
  }
  rank(id, file);
  return id;
}

void DiskIndex::remove(DiskFileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  const File& file = found->second;
  for (const Hash128& key : file.keys) {
    const auto slot = slots_.find(key);
    if (slot != slots_.end() && slot->second.file == id) slots_.erase(slot);
  }
  clock_ = std::max(clock_, file.worth);
  bytes_ -= file.bytes;
  order_.erase({file.worth, id});
  names_.erase(file.name);
  files_.erase(found);
}

std::optional<DiskSlot> DiskIndex::find(const Hash128& key) const {
  const auto found = slots_.find(key);
  if (found == slots_.end()) return std::nullopt;
  return found->second;
}

void DiskIndex::used(DiskFileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  ++found->second.uses;
  rank(id, found->second);
}

std::optional<DiskFileId> DiskIndex::over_budget() const {
  if (bytes_ <= budget_bytes_ || order_.empty()) return std::nullopt;
  return order_.begin()->second;
}

void DiskIndex::check() const {
  std::int64_t bytes = 0;
  for (const auto& [id, file] : files_) {
    bytes += file.bytes;
    if (!order_.contains({file.worth, id}) || names_.at(file.name) != id) {
      throw std::logic_error("disk index: a file is not in order");
    }
  }
  if (bytes != bytes_ || order_.size() != files_.size() || names_.size() != files_.size()) {
    throw std::logic_error("disk index: the books do not balance");
  }
  for (const auto& [key, slot] : slots_) {
    const auto file = files_.find(slot.file);
    if (file == files_.end() ||
        !(file->second.keys.at(static_cast<std::size_t>(slot.index)) == key)) {
      throw std::logic_error("disk index: a block lies in a file that has it not");
    }
  }
}

}  // namespace bodega::cache
