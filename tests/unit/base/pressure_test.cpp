#include "base/pressure.h"

#include <gtest/gtest.h>

namespace bodega {
namespace {

TEST(Pressure, IsReadFromTheKernelsText) {
  EXPECT_EQ(parse_pressure("some avg10=0.00 avg60=9.00 avg300=0.00 total=0\n"
                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
            MemoryPressure::kNone);
  EXPECT_EQ(parse_pressure("some avg10=7.21 avg60=1.00 avg300=0.00 total=0\n"
                           "full avg10=2.00 avg60=0.00 avg300=0.00 total=0\n"),
            MemoryPressure::kSome);
  EXPECT_EQ(parse_pressure("some avg10=60.00 avg60=1.00 avg300=0.00 total=0\n"
                           "full avg10=22.50 avg60=0.00 avg300=0.00 total=0\n"),
            MemoryPressure::kCritical);
  for (const char* text : {"", "some", "some avg10=", "full avg10=x", "avg10=99"}) {
    EXPECT_EQ(parse_pressure(text), MemoryPressure::kNone) << text;
  }
}

}  // namespace
}  // namespace bodega
