#include "cli/machine_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bodega::cli {
namespace {

using testing::HasSubstr;

MachineReport report() {
  MachineReport report;
  report.threads = 2;
  report.usable_cores = 2;
  report.bandwidth_gb_s = 10;
  report.probe.kernels = "cpu avx2";
  report.probe.exact = true;
  report.probe.checks = {{0, "embed", 0}, {1, "quant_linear", 1e-5}, {2, "quant_linear", 2e-5}};
  report.probe.work.weight_bytes = 80'000'000;
  report.probe.work.head_bytes = 20'000'000;
  report.probe.work.flops_per_row = 200'000'000;
  report.probe.one_row_s = 0.0125;
  report.probe.many_rows = 100;
  report.probe.many_rows_s = 0.2;
  return report;
}

TEST(MachineReport, DerivesRatesAndRidge) {
  EXPECT_DOUBLE_EQ(report().decode_gb_s(), 8);
  EXPECT_DOUBLE_EQ(report().gflops(), 100);
  EXPECT_DOUBLE_EQ(report().ridge_rows(), 4);  // 8 ms of reading, 2 ms of arithmetic a row
  EXPECT_TRUE(report().healthy());
  EXPECT_TRUE(report().advice().empty());
}

TEST(MachineReport, AKernelThatDisagreesIsNamed) {
  MachineReport sick = report();
  sick.probe.checks[2].relative_error = 0.1;
  EXPECT_FALSE(sick.healthy());
  EXPECT_THAT(to_text(sick), HasSubstr("WRONG quant_linear"));
  EXPECT_FALSE(to_json(sick).at("healthy").as_bool());
}

TEST(MachineReport, SaysWhatIsSlowAndWhy) {
  MachineReport slow = report();
  slow.probe.kernels = "cpu scalar";
  slow.probe.exact = false;
  slow.cgroup_cores = 1.0;
  slow.probe.one_row_s = 0.1;
  const std::string text = to_text(slow);
  EXPECT_EQ(slow.advice().size(), 4U);
  for (const char* part : {"stock MLX", "vector kernels", "quota", "10 % of the memory"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace bodega::cli
