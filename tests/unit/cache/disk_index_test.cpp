#include "cache/disk_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "../support/effort.h"

namespace bodega::cache {
namespace {

Hash128 key(std::uint64_t value) { return {value * 0x9E3779B97F4A7C15ULL, value}; }

TEST(DiskIndex, FindsABlockWhereItsFileHasIt) {
  DiskIndex disk(1000);
  const std::vector<Hash128> keys{key(1), key(2), key(3)};
  const DiskFileId file = disk.add(key(100), keys, 300);
  EXPECT_EQ(disk.find(key(2))->file, file);
  EXPECT_EQ(disk.find(key(2))->index, 1);
  EXPECT_FALSE(disk.find(key(4)));
  EXPECT_EQ(disk.add(key(100), keys, 300), file);
  EXPECT_EQ(disk.bytes(), 300);
  disk.remove(file);
  EXPECT_FALSE(disk.find(key(2)));
  EXPECT_EQ(disk.bytes(), 0);
}

TEST(DiskIndex, OverBudgetTheFileUsedLeastGoes) {
  DiskIndex disk(250);
  const DiskFileId a = disk.add(key(100), std::vector{key(1)}, 100);
  const DiskFileId b = disk.add(key(101), std::vector{key(2)}, 100);
  EXPECT_FALSE(disk.over_budget());
  disk.used(a);
  disk.add(key(102), std::vector{key(3)}, 100);
  EXPECT_EQ(disk.over_budget(), b);
}

TEST(DiskIndex, UsesLongAgoAreForgotten) {
  DiskIndex disk(1000);
  const DiskFileId once_popular = disk.add(key(1), std::vector{key(1)}, 100);
  for (int i = 0; i < 20; ++i) disk.used(once_popular);
  std::uint64_t next = 1000;
  int scanned = 0;
  while (disk.contains(once_popular) && scanned < 10'000) {
    disk.add(key(next), std::vector{key(next)}, 100);
    ++next;
    ++scanned;
    while (const auto file = disk.over_budget()) disk.remove(*file);
  }
  EXPECT_GT(scanned, 100);     // a scan does not flush it
  EXPECT_LT(scanned, 10'000);  // but it does not stay for ever
}

TEST(DiskIndex, BalancesAfterRandomOperations) {
  std::mt19937 random(5);
  DiskIndex disk(2000);
  std::map<DiskFileId, std::vector<Hash128>> files;
  for (int step = 0; step < effort(20'000); ++step) {
    const std::uint64_t name = random() % 60;
    if (random() % 3 != 0) {
      std::vector<Hash128> keys;
      for (std::uint64_t i = 0; i < 1 + random() % 4; ++i) keys.push_back(key(name % 50 + i));
      const int before = disk.files();
      const DiskFileId file = disk.add(key(1000 + name), keys, 100);
      if (disk.files() > before) files[file] = keys;
    } else if (!files.empty()) {
      const DiskFileId file = files.begin()->first;
      if (random() % 2 == 0) {
        disk.used(file);
      } else {
        disk.remove(file);
        files.erase(file);
      }
    }
    while (const auto file = disk.over_budget()) {
      disk.remove(*file);
      files.erase(*file);
    }
    ASSERT_LE(disk.bytes(), 2000);
    if (step % 16 == 0) {
      ASSERT_NO_THROW(disk.check());
    }
  }
}

}  // namespace
}  // namespace bodega::cache
