#include "base/memory.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/bytes.h"

namespace bodega {
namespace {

TEST(Memory, ResidentMemoryFollowsWhatIsTouched) {
  const auto before = process_memory();
  ASSERT_TRUE(before.has_value());
  constexpr std::size_t kSize = 64 * kMiB;
  const auto block = std::make_unique<volatile char[]>(kSize);  // volatile: the writes must happen
  for (std::size_t i = 0; i < kSize; i += kKiB) block[i] = 1;
  const auto after = process_memory();
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(after->resident_bytes, before->resident_bytes + 60 * kMiB);
  EXPECT_GE(after->peak_resident_bytes, after->resident_bytes - kMiB);
}

TEST(Memory, AProcessThatIsNotThereHasNone) {
  EXPECT_FALSE(process_memory(0x7FFFFFF0).has_value());
}

TEST(Memory, TheMachineHasSome) {
  const auto memory = system_memory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_GT(memory->total_bytes, 256 * kMiB);
  EXPECT_LE(memory->available_bytes, memory->total_bytes);
}

}  // namespace
}  // namespace bodega
