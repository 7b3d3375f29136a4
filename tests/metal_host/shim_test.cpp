// The shim itself: that it runs kernels right, and that each fault it is there for is found.
#include <gtest/gtest.h>

#include "shim/buffer.h"

namespace metal_host {
namespace {

using namespace msl;

using Body = std::function<void(const ThreadPosition&)>;

// What the launch fails with; empty when it does not.
std::string failure_of(int threads, Region* region, const Body& body, unsigned groups = 1) {
  try {
    launch({groups, 1, 1}, threads, {region}, body);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Shim, EveryThreadOfTheGridRunsOnce) {
  Buffer<int> out("out", 6 * 64);
  launch({2, 3, 1}, 64, {out.region()}, [&](const ThreadPosition& at) {
    const unsigned group = at.group.y * 2 + at.group.x;
    EXPECT_EQ(at.thread, at.simd * 32 + at.lane);
    out.out()[group * 64 + at.thread] = static_cast<int>(group * 1000 + at.thread);
  });
  for (int i = 0; i < 6 * 64; ++i) ASSERT_EQ(i / 64 * 1000 + i % 64, out.values()[i]);
}

TEST(Shim, ThreadgroupMemoryIsSharedThroughBarriers) {
  Buffer<float> out("out", 128);
  launch({1, 1, 1}, 128, {out.region()}, [&](const ThreadPosition& at) {
    const Ptr<float> shared = threadgroup_array<float>(128, "shared");
    for (int round = 0; round < 3; ++round) {
      shared[at.thread] = static_cast<float>(at.thread + round);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float other = shared[127 - at.thread];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      out.out()[at.thread] = other;
    }
  });
  for (int i = 0; i < 128; ++i) ASSERT_EQ(static_cast<float>(127 - i + 2), out.values()[i]);
}

TEST(Shim, LanesExchangeValues) {
  launch({1, 1, 1}, 64, {}, [&](const ThreadPosition& at) {
    const auto own = static_cast<float>(at.thread);
    EXPECT_EQ(static_cast<float>(at.thread ^ 8U), simd_shuffle_xor(own, 8));
    EXPECT_EQ(static_cast<float>(at.simd * 32 + 5), simd_shuffle(own, 5));
    EXPECT_EQ(static_cast<float>(496 + at.simd * 1024), simd_sum(own));
    EXPECT_EQ(static_cast<float>(at.simd * 32 + 31), simd_max(own));
  });
}

TEST(Shim, MatricesMultiply) {
  launch({1, 1, 1}, 32, {}, [&](const ThreadPosition& at) {
    const int row = fragment_row(static_cast<int>(at.lane));
    const int column = fragment_column(static_cast<int>(at.lane));
    ASSERT_EQ(static_cast<int>(at.lane), fragment_lane(row, column));
    auto a = [](int i, int j) { return static_cast<float>(i * 3 - j); };
    auto b = [](int i, int j) { return static_cast<float>((i * 5 + j * 7) % 11); };
    simdgroup_float8x8 left;
    simdgroup_half8x8 right;
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8>(1.0F);
    for (int e = 0; e < 2; ++e) {
      left.thread_elements()[e] = a(row, column + e);
      right.thread_elements()[e] = half(b(row, column + e));
    }
    simdgroup_multiply_accumulate(sum, left, right, sum);
    for (int e = 0; e < 2; ++e) {
      float want = 1.0F;
      for (int k = 0; k < 8; ++k) want += a(row, k) * b(k, column + e);
      EXPECT_EQ(want, sum.thread_elements()[e]);
    }
  });
}

TEST(Shim, HalfRoundsToNearestEven) {
  EXPECT_EQ(1.0F, static_cast<float>(half(1.00048828125F)));          // a tie
  EXPECT_EQ(1.001953125F, static_cast<float>(half(1.00146484375F)));  // a tie the other way
  EXPECT_EQ(65504.0F, static_cast<float>(half(65519.0F)));
  EXPECT_TRUE(std::isinf(static_cast<float>(half(65520.0F))));
  EXPECT_EQ(5.9604644775390625e-8F, static_cast<float>(half(6e-8F)));
}

TEST(Shim, FindsReadsAndWritesOutsideABuffer) {
  Buffer<float> buffer("buffer", 64);
  EXPECT_TRUE(has(failure_of(32, buffer.region(),
                             [&](const ThreadPosition& at) { buffer.out()[at.lane + 33] = 1.0F; }),
                  "buffer: write of 4 bytes at byte 256 of 256"));
  EXPECT_TRUE(has(
      failure_of(32, buffer.region(), [&](const ThreadPosition&) { (void)(buffer.in() + -1)[0]; }),
      "buffer: read of 4 bytes at byte -4"));
  EXPECT_TRUE(
      has(failure_of(32, buffer.region(),
                     [&](const ThreadPosition&) { (void)Ptr<const float4>(buffer.in() + 1)[0]; }),
          "not aligned"));
}

TEST(Shim, FindsWritesToInputs) {
  Buffer<float> buffer("weights", 32);
  const Ptr<float> smuggled(buffer.values().data(), buffer.in().region());
  EXPECT_TRUE(has(
      failure_of(32, buffer.region(), [&](const ThreadPosition& at) { smuggled[at.lane] = 1.0F; }),
      "weights is written"));
}

TEST(Shim, FindsMoreThan32KilobytesOfThreadgroupMemory) {
  const std::string text = failure_of(32, nullptr, [](const ThreadPosition&) {
    threadgroup_array<float>(8192, "first");
    threadgroup_array<float>(1, "second");
  });
  EXPECT_TRUE(has(text, "more than 32 KB")) << text;
}

TEST(Shim, FindsABarrierThatSomeThreadsDoNotReach) {
  EXPECT_TRUE(has(failure_of(64, nullptr,
                             [](const ThreadPosition& at) {
                               if (at.thread == 40) return;
                               threadgroup_barrier(mem_flags::mem_threadgroup);
                             }),
                  "thread 40 has ended"));
  // Two barriers are two places, even when every thread reaches one. (Outside the macro, which
  // would put both on one line.)
  const Body two_barriers = [](const ThreadPosition& at) {
    if (at.simd == 0) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    } else {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  };
  EXPECT_TRUE(has(failure_of(64, nullptr, two_barriers), "not all threads reach a barrier"));
  EXPECT_TRUE(has(failure_of(32, nullptr,
                             [](const ThreadPosition& at) {
                               if (at.lane < 16) (void)simd_sum(1.0F);
                             }),
                  "not all threads reach a barrier"));
}

TEST(Shim, FindsRacesInThreadgroupMemory) {
  auto run = [](const std::function<void(const Ptr<float>&, const ThreadPosition&)>& body) {
    return failure_of(64, nullptr, [&](const ThreadPosition& at) {
      const Ptr<float> shared = threadgroup_array<float>(64, "shared");
      body(shared, at);
    });
  };
  EXPECT_TRUE(has(run([](const Ptr<float>& shared, const ThreadPosition& at) {
                    shared[at.thread] = 1.0F;
                    (void)static_cast<float>(shared[0]);
                  }),
                  "race"));
  EXPECT_TRUE(has(
      run([](const Ptr<float>& shared, const ThreadPosition& at) { shared[at.thread / 2] = 1.0F; }),
      "race"));
  // Written while another thread may still read the last round.
  EXPECT_TRUE(has(run([](const Ptr<float>& shared, const ThreadPosition& at) {
                    shared[at.thread] = 1.0F;
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    (void)static_cast<float>(shared[63 - at.thread]);
                    shared[at.thread] = 2.0F;
                  }),
                  "race"));
  EXPECT_TRUE(has(run([](const Ptr<float>& shared, const ThreadPosition& at) {
                    if (at.thread < 10) shared[at.thread] = 1.0F;
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    (void)static_cast<float>(shared[at.thread]);
                  }),
                  "never written"));
  // A simdgroup's barrier orders its own lanes, not those of another simdgroup.
  auto across = [&](unsigned distance) {
    return run([=](const Ptr<float>& shared, const ThreadPosition& at) {
      shared[at.thread] = 1.0F;
      simdgroup_barrier(mem_flags::mem_threadgroup);
      (void)static_cast<float>(shared[at.thread ^ distance]);
    });
  };
  EXPECT_EQ("", across(1));
  EXPECT_TRUE(has(across(32), "r"));
}

TEST(Shim, FindsRacesInDeviceMemory) {
  Buffer<float> buffer("out", 64);
  EXPECT_TRUE(has(
      failure_of(
          32, buffer.region(), [&](const ThreadPosition& at) { buffer.out()[at.lane] = 1.0F; }, 2),
      "race"));
  EXPECT_TRUE(has(failure_of(
                      32, buffer.region(),
                      [&](const ThreadPosition& at) {
                        const unsigned own = at.group.x * 32 + at.lane;
                        buffer.out()[own] = 1.0F;
                        (void)static_cast<float>(buffer.out()[own % 32]);
                      },
                      2),
                  "race"));
  EXPECT_EQ(
      "",
      failure_of(
          32, buffer.region(),
          [&](const ThreadPosition& at) { buffer.out()[at.group.x * 32 + at.lane] += 1.0F; }, 2));
}

}  // namespace
}  // namespace metal_host
