#include "engine/disk/block_store.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "engine/disk/store_header.h"

namespace bodega::engine {
namespace {

constexpr std::string_view kSuffix = ".kv";
constexpr double kQuietS = 10;        // between two lines of the log
constexpr double kLeftBehindS = 600;  // a file that is still not renamed after this never will be

std::optional<Hash128> name_of(const std::string& file) {
  if (!file.ends_with(kSuffix)) return std::nullopt;
  const auto bytes = from_hex(std::string_view(file).substr(0, file.size() - kSuffix.size()));
  if (!bytes || bytes->size() != sizeof(Hash128)) return std::nullopt;
  Hash128 name;
  for (std::size_t i = 0; i < 8; ++i) {
    name.high = name.high << 8 | (*bytes)[i];
    name.low = name.low << 8 | (*bytes)[8 + i];
  }
  return name;
}

}  // namespace

BlockStore::BlockStore(Config config, std::shared_ptr<Files> files, Memory memory)
    : config_(std::move(config)), files_(std::move(files)), memory_(std::move(memory)) {
  Hasher128 hasher;
  hasher.add(std::string_view(config_.subject));
  hasher.add(static_cast<std::uint64_t>(config_.block_bytes));
  subject_ = hasher.finish();
  folder_ = config_.root + '/' + to_hex(subject_);
}

void BlockStore::complain(const char* message, const std::exception& error) {
  const double now = monotonic_seconds();
  if (now < quiet_until_s_) return;
  quiet_until_s_ = now + kQuietS;
  log_warn(message, {{"reason", error.what()}});
}

std::string BlockStore::path(const Hash128& name) const {
  return folder_ + '/' + to_hex(name) + std::string(kSuffix);
}

std::int64_t BlockStore::file_bytes(int blocks) const {
  return static_cast<std::int64_t>(kHeaderBytes) + blocks * config_.block_bytes;
}

bool BlockStore::write(const cache::SpillJob& job) {
  StoreHeader header{subject_, static_cast<std::uint64_t>(config_.block_bytes), job.stored, {}};
  for (const cache::BlockId block : job.blocks) header.checksums.push_back(hash64(memory_(block)));
  const HeaderPage page = encode_header(header);
  std::vector<std::span<const std::byte>> parts{page};
  for (const cache::BlockId block : job.blocks) parts.push_back(memory_(block));
  const std::string aside = path(job.name) + '.' + std::to_string(::getpid()) + ".tmp";
  try {
    files_->make_folder(folder_);
    files_->write(aside, parts);
    files_->rename(aside, path(job.name));
    return true;
  } catch (const std::exception& error) {
    complain("KV blocks could not be written to the SSD", error);
  }
  try {
    files_->remove(aside);
  } catch (const std::exception&) {
    // scan() sweeps it up
  }
  return false;
}

int BlockStore::read(const cache::RestoreJob& job) {
  const std::span<const cache::RestoreJob::Part> parts = job.parts;
  std::size_t good = 0;
  while (good < parts.size()) {
    std::size_t end = good + 1;
    while (end < parts.size() && parts[end].slot.file == parts[good].slot.file) ++end;
    const int fine = read_file(parts.subspan(good, end - good));
    good += static_cast<std::size_t>(fine);
    if (good < end) break;
  }
  return static_cast<int>(good);
}

// Blocks of one file; how many of them, from the first on, are what was expected.
int BlockStore::read_file(std::span<const cache::RestoreJob::Part> parts) {
  HeaderPage page;
  int good = 0;
  try {
    const Files::Piece head{0, page};
    files_->read(path(parts[0].file), {&head, 1});
    const std::optional<StoreHeader> header = decode_header(page);
    if (!header || !(header->subject == subject_) ||
        header->block_bytes != static_cast<std::uint64_t>(config_.block_bytes)) {
      return 0;
    }
    std::vector<Files::Piece> pieces;
    for (const cache::RestoreJob::Part& part : parts) {
      const auto index = static_cast<std::size_t>(part.slot.index);
      if (index >= header->blocks.size()) break;
      const cache::StoredBlock& stored = header->blocks[index];
      if (!(stored.key == part.expected.key) || !(stored.parent == part.expected.parent) ||
          stored.tokens != part.expected.tokens) {
        break;
      }
      pieces.push_back({file_bytes(part.slot.index), memory_(part.block)});
    }
    files_->read(path(parts[0].file), pieces);
    for (; good < static_cast<int>(pieces.size()); ++good) {
      const auto i = static_cast<std::size_t>(good);
      const auto index = static_cast<std::size_t>(parts[i].slot.index);
      if (hash64(pieces[i].into) != header->checksums[index]) break;
    }
  } catch (const std::exception& error) {
    complain("KV blocks could not be read from the SSD", error);
  }
  return good;
}

void BlockStore::remove(const Hash128& name) {
  try {
    files_->remove(path(name));
  } catch (const std::exception& error) {
    complain("a file of KV blocks could not be deleted", error);
  }
}

std::vector<BlockStore::Found> BlockStore::scan(const std::function<bool(const Hash128&)>& known) {
  std::vector<Found> found;
  try {
    files_->make_folder(folder_);
    for (const Files::Listed& file : files_->list(folder_)) {
      const std::optional<Hash128> name = name_of(file.name);
      if (!name && file.age_s > kLeftBehindS) files_->remove(folder_ + '/' + file.name);
      if (!name || known(*name)) continue;
      HeaderPage page;
      const Files::Piece head{0, page};
      std::optional<StoreHeader> header;
      try {
        files_->read(path(*name), {&head, 1});
        header = decode_header(page);
      } catch (const std::exception&) {
        // gone meanwhile, or too short
      }
      const bool fits = header && header->subject == subject_ &&
                        file.bytes == file_bytes(static_cast<int>(header->blocks.size()));
      if (!fits) {
        remove(*name);
        continue;
      }
      Found entry{*name, {}, file.bytes};
      for (const cache::StoredBlock& block : header->blocks) entry.keys.push_back(block.key);
      found.push_back(std::move(entry));
    }
  } catch (const std::exception& error) {
    complain("the folder of KV blocks could not be read", error);
  }
  return found;
}

void BlockStore::trim_others(std::int64_t budget_bytes) {
  struct Old {
    std::string path;
    std::int64_t bytes;
    double age_s;
  };
  try {
    std::vector<Old> others;
    std::int64_t total = 0;
    for (const std::string& folder : files_->list_folders(config_.root)) {
      const std::string whole = config_.root + '/' + folder;
      for (const Files::Listed& file : files_->list(whole)) {
        total += file.bytes;
        if (whole != folder_) others.push_back({whole + '/' + file.name, file.bytes, file.age_s});
      }
    }
    std::sort(others.begin(), others.end(),
              [](const Old& a, const Old& b) { return a.age_s > b.age_s; });
    for (const Old& file : others) {
      if (total <= budget_bytes) break;
      files_->remove(file.path);
      total -= file.bytes;
    }
  } catch (const std::exception& error) {
    complain("old files of KV blocks could not be deleted", error);
  }
}

}  // namespace bodega::engine
