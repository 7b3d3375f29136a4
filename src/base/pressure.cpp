#include "base/pressure.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace bodega {
namespace {

constexpr double kSomePercent = 5;       // of the time, somebody waited
constexpr double kCriticalPercent = 10;  // of the time, everybody waited

// "full avg10=1.23 ..." -> 1.23; -1: no such line.
double average(std::string_view text, std::string_view kind) {
  const std::string wanted = std::string(kind) + " avg10=";
  const auto at = text.find(wanted);
  if (at == std::string_view::npos) return -1;
  const std::string number(text.substr(at + wanted.size(), 16));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  return end == number.c_str() ? -1 : value;
}

}  // namespace

MemoryPressure parse_pressure(std::string_view text) {
  if (average(text, "full") >= kCriticalPercent) return MemoryPressure::kCritical;
  if (average(text, "some") >= kSomePercent) return MemoryPressure::kSome;
  return MemoryPressure::kNone;
}

MemoryPressure system_memory_pressure() {
#ifdef __APPLE__
  int level = 0;
  std::size_t size = sizeof(level);
  if (sysctlbyname("kern.memorystatus_vm_pressure_level", &level, &size, nullptr, 0) != 0) {
    return MemoryPressure::kNone;
  }
  constexpr int kWarn = 2;
  constexpr int kCritical = 4;
  if (level >= kCritical) return MemoryPressure::kCritical;
  return level >= kWarn ? MemoryPressure::kSome : MemoryPressure::kNone;
#else
  std::ifstream file("/proc/pressure/memory");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_pressure(text);
#endif
}

}  // namespace bodega
