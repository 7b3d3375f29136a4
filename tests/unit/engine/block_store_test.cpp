#include "engine/disk/block_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "engine/disk/measure_disk.h"
#include "engine/disk/store_header.h"
#include "faulty_files.h"

namespace bodega::engine {
namespace {

using Fault = FaultyFiles::Fault;
constexpr int kBlocks = 8;
constexpr std::size_t kBlockBytes = 1000;

class BlockStoreTest : public testing::Test {
 protected:
  BlockStore open(std::shared_ptr<Files> files, std::string subject = "model") {
    return BlockStore({root_, std::move(subject), kBlockBytes}, std::move(files),
                      [this](cache::BlockId block) { return memory(block); });
  }
  std::span<std::byte> memory(cache::BlockId block) {
    return {pool_.data() + static_cast<std::size_t>(block) * kBlockBytes, kBlockBytes};
  }
  static cache::StoredBlock stored(int i) {
    cache::StoredBlock block{
        {1, static_cast<std::uint64_t>(i)}, {1, static_cast<std::uint64_t>(i) - 1}, {}};
    block.tokens.fill(100 + i);
    return block;
  }
  // Blocks 0 and 1 of the pool, as the third and fourth of a prefix.
  cache::SpillJob spill() {
    fill();
    return {1, {7, 7}, {stored(3), stored(4)}, {0, 1}};
  }
  void fill() {
    std::mt19937 random(1);
    for (std::byte& byte : pool_) byte = static_cast<std::byte>(random());
  }
  // The same blocks into 4 and 5.
  static cache::RestoreJob restore() {
    cache::RestoreJob job;
    job.id = 2;
    for (int i = 0; i < 2; ++i) {
      job.parts.push_back({{1, i}, {7, 7}, stored(3 + i), static_cast<cache::BlockId>(4 + i)});
    }
    return job;
  }
  bool is_back(int i) {
    return std::equal(memory(i).begin(), memory(i).end(), memory(4 + i).begin());
  }

  std::string root_ = "kv";
  std::shared_ptr<FaultyFiles> files_ = std::make_shared<FaultyFiles>();
  std::vector<std::byte> pool_ = std::vector<std::byte>(kBlocks * kBlockBytes);
};

TEST_F(BlockStoreTest, WhatWasWrittenComesBack) {
  BlockStore store = open(files_);
  ASSERT_TRUE(store.write(spill()));
  EXPECT_EQ(store.read(restore()), 2);
  EXPECT_TRUE(is_back(0) && is_back(1));
}

TEST_F(BlockStoreTest, AnotherProcessFindsTheFile) {
  ASSERT_TRUE(open(files_).write(spill()));
  const auto found = open(files_).scan([](const Hash128&) { return false; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, (Hash128{7, 7}));
  EXPECT_EQ(found[0].keys.size(), 2U);
  EXPECT_EQ(found[0].bytes, open(files_).file_bytes(2));
  EXPECT_TRUE(open(files_).scan([](const Hash128&) { return true; }).empty());
  EXPECT_TRUE(open(files_, "another build").scan([](const Hash128&) { return false; }).empty());
}

TEST_F(BlockStoreTest, EveryFaultOfReadingIsAMiss) {
  for (const Fault fault : {Fault::kShort, Fault::kDamaged, Fault::kVanished}) {
    files_ = std::make_shared<FaultyFiles>();
    BlockStore store = open(files_);
    ASSERT_TRUE(store.write(spill()));
    files_->set(fault);
    EXPECT_EQ(store.read(restore()), 0);
  }
}

TEST_F(BlockStoreTest, EveryDamagedByteIsNoticed) {
  BlockStore store = open(files_);
  ASSERT_TRUE(store.write(spill()));
  const std::size_t bytes = kHeaderBytes + 2 * kBlockBytes;
  for (std::size_t at = 0; at < bytes; at += at < 400 ? 1 : 37) {
    const auto flip = [at](std::vector<std::byte>& file) { file[at] ^= std::byte{1}; };
    files_->change_all(flip);
    const int good = store.read(restore());
    EXPECT_EQ(good, at < kHeaderBytes + kBlockBytes ? 0 : 1) << at;
    files_->change_all(flip);
  }
  EXPECT_EQ(store.read(restore()), 2);
}

TEST_F(BlockStoreTest, ABlockIsBelievedForItsOwnTokensAndPrefixOnly) {
  BlockStore store = open(files_);
  ASSERT_TRUE(store.write(spill()));
  cache::RestoreJob other_tokens = restore();
  other_tokens.parts[1].expected.tokens[5] = 0;
  EXPECT_EQ(store.read(other_tokens), 1);
  cache::RestoreJob other_parent = restore();
  other_parent.parts[0].expected.parent.low = 99;
  EXPECT_EQ(store.read(other_parent), 0);
  cache::RestoreJob beyond = restore();
  beyond.parts[0].slot.index = 30;
  EXPECT_EQ(store.read(beyond), 0);
  EXPECT_EQ(open(files_, "another build").read(restore()), 0);
}

TEST_F(BlockStoreTest, AFullDiskOrACrashLeavesNothingToBeBelieved) {
  for (const Fault fault : {Fault::kFull, Fault::kNoRename}) {
    files_ = std::make_shared<FaultyFiles>();
    BlockStore store = open(files_);
    files_->set(fault);
    EXPECT_FALSE(store.write(spill()));
    files_->set(Fault::kNone);
    EXPECT_EQ(files_->count(".kv"), 0U);
    EXPECT_EQ(files_->count(".tmp"), 1U);
    EXPECT_EQ(store.read(restore()), 0);
    EXPECT_TRUE(store.scan([](const Hash128&) { return false; }).empty());
    EXPECT_EQ(files_->count(".tmp"), 1U);  // it may be another process's, which is still writing
    files_->set_age(1e6);
    store.scan([](const Hash128&) { return false; });
    EXPECT_EQ(files_->count(".tmp"), 0U);
  }
}

TEST_F(BlockStoreTest, AScanDeletesWhatIsNotWhole) {
  BlockStore store = open(files_);
  ASSERT_TRUE(store.write(spill()));
  files_->change_all([](std::vector<std::byte>& file) { file.pop_back(); });
  EXPECT_TRUE(store.scan([](const Hash128&) { return false; }).empty());
  EXPECT_EQ(files_->count(".kv"), 0U);
}

TEST_F(BlockStoreTest, OtherModelsFilesGoWhenTheBudgetIsFull) {
  ASSERT_TRUE(open(files_, "old build").write(spill()));
  ASSERT_TRUE(open(files_).write(spill()));
  const std::int64_t one = open(files_).file_bytes(2);
  open(files_).trim_others(2 * one);
  EXPECT_EQ(files_->count(".kv"), 2U);
  open(files_).trim_others(one);
  EXPECT_EQ(files_->count(".kv"), 1U);
  EXPECT_EQ(open(files_).read(restore()), 2);
}

TEST_F(BlockStoreTest, RandomPagesAreNoHeaders) {
  std::mt19937 random(3);
  HeaderPage page;
  for (int i = 0; i < 2000; ++i) {
    for (std::byte& byte : page) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(decode_header(page));
  }
}

TEST_F(BlockStoreTest, TheRealFileSystemDoesTheSame) {
  root_ = testing::TempDir() + "bodega_block_store";
  std::filesystem::remove_all(root_);
  BlockStore store = open(real_files());
  ASSERT_TRUE(store.write(spill()));
  EXPECT_EQ(store.read(restore()), 2);
  EXPECT_TRUE(is_back(0) && is_back(1));
  EXPECT_EQ(store.scan([](const Hash128&) { return false; }).size(), 1U);
  store.remove({7, 7});
  EXPECT_EQ(store.read(restore()), 0);
  std::filesystem::remove_all(root_);
  EXPECT_EQ(store.read(restore()), 0);
  EXPECT_TRUE(store.write(spill()));  // makes its folder again
  std::filesystem::remove_all(root_);
}

TEST(MeasureDisk, SaysHowFastAFolderIs) {
  const auto speed = measure_disk(testing::TempDir() + "bodega_speed");
  ASSERT_TRUE(speed);
  EXPECT_GT(speed->read, 1e6);
  EXPECT_GT(speed->write, 1e6);
  EXPECT_FALSE(measure_disk("/proc/nowhere"));
  std::filesystem::remove_all(testing::TempDir() + "bodega_speed");
}

}  // namespace
}  // namespace bodega::engine
