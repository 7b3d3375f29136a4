#include "model/mapped_file.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/bytes.h"
#include "base/memory.h"
#include "fixtures.h"

namespace bodega::model {
namespace {

// What makes "never two copies" true: pages that were read are given back while reading goes on.
TEST(MappedFile, ReadPagesDoNotStayInMemory) {
  const TemporaryFolder folder;
  write_file(folder.path() / "big", std::string(64 * kMiB, 'x'));
  const auto file = MappedFile::open(folder.path() / "big");
  const std::uint64_t before = process_memory().value().resident_bytes;
  std::uint64_t most = before;
  std::uint64_t sum = 0;
  {
    const MappedRange range(file, file->bytes());
    for (std::size_t at = 0; at < range.size(); at += kMiB) {
      for (std::size_t i = 0; i < kMiB; i += 512)
        sum += static_cast<unsigned>(range.data()[at + i]);
      range.note_read(kMiB);
      most = std::max(most, process_memory().value().resident_bytes);
    }
  }
  EXPECT_EQ(sum, 64 * kMiB / 512 * 'x');
  EXPECT_LT(most - before, 12 * kMiB);
  EXPECT_LT(process_memory().value().resident_bytes, before + 2 * kMiB);
}

TEST(MappedFile, RowsMayBeReadByManyThreads) {
  const auto checkpoint = Checkpoint::open(fixture_path("mlx_mixed"));
  const auto source = checkpoint->matrix("model.embed_tokens.weight", 64, 64);
  std::vector<float> whole(64 * 64);
  source->read_values(0, 64, whole.data());
  std::vector<std::vector<float>> parts(4, std::vector<float>(16 * 64));
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { source->read_values(16 * i, 16, parts[i].data()); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parts[i],
              std::vector<float>(whole.begin() + i * 1024, whole.begin() + (i + 1) * 1024));
  }
}

}  // namespace
}  // namespace bodega::model
