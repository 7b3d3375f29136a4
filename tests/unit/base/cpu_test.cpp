#include "base/cpu.h"

#include <gtest/gtest.h>

#include "base/errors.h"
#include "scoped_env.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace bodega {
namespace {

TEST(Cpu, TheEnvironmentDecidesWhenSet) {
  const ScopedEnv threads("BODEGA_THREADS", "3");
  EXPECT_EQ(cpu_count(), 3);
  for (const char* text : {"0", "-1", "many", "1025"}) {
    const ScopedEnv bad("BODEGA_THREADS", text);
    EXPECT_THROW(cpu_count(), Error) << text;
  }
}

TEST(Cpu, ReadsTheQuotaOfAControlGroup) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("150000 100000").value_or(0), 1.5);
  for (const char* text : {"max 100000", "", "100000", "100000 ", "0 100000", "-1 100000", "5 0"}) {
    EXPECT_FALSE(parse_cpu_max(text).has_value()) << text;
  }
}

#ifdef __linux__
TEST(Cpu, CountsOnlyTheProcessorsItMayRunOn) {
  const ScopedEnv threads("BODEGA_THREADS", nullptr);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(cpu_count(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(affinity_cpu_count(), 1);
  EXPECT_EQ(cpu_count(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}
#endif

}  // namespace
}  // namespace bodega
