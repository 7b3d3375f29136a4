#include "engine/disk/open_store.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/disk/measure_disk.h"

namespace bodega::engine {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{2} << 20;

bool knows_speed(cost::CostModel& prices, const std::string& folder) {
  if (prices.machine().has_ssd()) return true;
  const std::optional<DiskSpeed> speed = measure_disk(folder);
  if (!speed) return false;
  prices.set_ssd(speed->read, speed->write, speed->latency_s);
  return true;
}

}  // namespace

int blocks_per_file(Runner& runner) {
  const auto bytes = static_cast<std::int64_t>(runner.block_memory(0).size());
  if (bytes == 0) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(kFileBytes / bytes, 1, kMostBlocksAFile));
}

std::unique_ptr<BlockIo> open_block_io(const EngineConfig& config, Runner& runner,
                                       std::function<void()> wake) {
  if (config.disk_bytes <= 0 || config.disk_folder.empty() || !config.prefix_cache) return nullptr;
  const std::size_t block_bytes = runner.block_memory(0).size();
  if (block_bytes == 0) return nullptr;
  if (runner.prices() != nullptr && !knows_speed(*runner.prices(), config.disk_folder)) {
    log_warn("the folder for KV blocks cannot be used: there is no SSD cache",
             {{"folder", config.disk_folder}});
    return nullptr;
  }
  BlockStore::Config store;
  store.root = config.disk_folder;
  store.subject = config.model_salt + '\n' + runner.identity() + '\n' + config.build;
  store.block_bytes = static_cast<std::int64_t>(block_bytes);
  auto files = config.disk_files != nullptr ? config.disk_files : real_files();
  auto memory = [&runner](cache::BlockId block) { return runner.block_memory(block); };
  return std::make_unique<BlockIo>(
      std::make_unique<BlockStore>(std::move(store), std::move(files), std::move(memory)),
      config.disk_bytes, std::move(wake));
}

}  // namespace bodega::engine
