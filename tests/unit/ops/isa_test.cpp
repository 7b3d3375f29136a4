// Which instruction set runs: the best by default, another by BODEGA_CPU_ISA, never one by mistake.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/errors.h"
#include "ops/cpu/kernels.h"

namespace bodega::ops::cpu {
namespace {

class Isa : public testing::Test {
 protected:
  static void force(const char* name) { ::setenv("BODEGA_CPU_ISA", name, 1); }
  void TearDown() override { ::unsetenv("BODEGA_CPU_ISA"); }
};

TEST_F(Isa, TheBestOneThatRunsHereIsChosen) {
  ::unsetenv("BODEGA_CPU_ISA");
  for (const char* name : kernel_names()) {
    if (find_kernels(name) == nullptr) continue;
    EXPECT_STREQ(name, choose_kernels().name);
    return;
  }
  FAIL() << "no table can run";
}

TEST_F(Isa, EachCanBeForced) {
  for (const char* name : kernel_names()) {
    if (find_kernels(name) == nullptr) continue;
    force(name);
    EXPECT_STREQ(name, choose_kernels().name);
  }
}

TEST_F(Isa, AnUnknownNameIsAnErrorThatListsTheOthers) {
  for (const char* name : {"sse9", "AVX2", "neon2"}) {
    force(name);
    try {
      choose_kernels();
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(ErrorKind::kConfig, error.kind());
      EXPECT_NE(std::string::npos, std::string(error.what()).find("scalar")) << error.what();
    }
  }
}

#if defined(__aarch64__)
TEST_F(Isa, ArmHasNeon) { EXPECT_STREQ("neon", choose_kernels().name); }
#endif

}  // namespace
}  // namespace bodega::ops::cpu
