#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

// A GPU of one core, in plain C++: a kernel runs with one fiber a thread and with real barriers,
// and what a Mac would only crash on (or get wrong now and then) ends the launch with a Failure.
namespace metal_host {

inline constexpr int kSimdWidth = 32;
inline constexpr std::size_t kThreadgroupBytes = 32 * 1024;  // of every Apple GPU

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Location = std::source_location;

// A stretch of memory that a kernel may touch. Writable ones remember, for every two bytes, who
// wrote and who read them last.
class Region {
 public:
  enum class Kind { kConstant, kDevice, kThreadgroup };

  Region(std::string name, Kind kind, void* data, std::size_t bytes);
  void begin_launch();  // forgets the accesses of the last launch

  // Throws Failure when the running thread may not read or write these bytes.
  void check_read(const void* at, std::size_t size, std::size_t alignment) const;
  void check_write(const void* at, std::size_t size, std::size_t alignment);
  std::size_t bytes() const { return bytes_; }

 private:
  void check_bounds(const void* at, std::size_t size, std::size_t alignment,
                    const char* verb) const;
  struct Stamp {  // when, and by whom; -1 = nobody yet, -2 = several
    std::int32_t thread = -1;
    std::int32_t simd = -1;
    std::int32_t group = -1;
    std::int32_t epoch = -1;       // threadgroup barriers passed
    std::int32_t simd_epoch = -1;  // simdgroup barriers passed since
  };
  struct Cell {
    Stamp written;
    Stamp read;
  };
  [[noreturn]] void conflict(const char* verb, const Cell& cell, std::size_t offset) const;
  bool ordered(const Stamp& stamp) const;
  void note_read(Stamp& stamp) const;
  static Stamp now();

  std::string name_;
  Kind kind_;
  unsigned char* data_;
  std::size_t bytes_;
  mutable std::vector<Cell> cells_;
};

// --- inside a kernel
// ---------------------------------------------------------------------------------

void group_barrier(Location where);
// Waits for the 31 others of the simdgroup; all must be at the same place.
void simd_barrier(Location where);
// Gives `size` bytes to the others and returns where theirs lie, `stride` apart, by lane.
struct Exchange {
  const unsigned char* data;
  static constexpr std::size_t kStride = 16;
};
Exchange exchange(const void* value, std::size_t size, Location where);
int current_lane();
// Memory of the running threadgroup; the n-th declaration of every thread is the same array.
Region* declare_threadgroup(std::size_t bytes, const char* name, void** data);

// --- around a kernel
// ---------------------------------------------------------------------------------

struct uint3_plain {
  unsigned x, y, z;
};
struct ThreadPosition {
  uint3_plain group;
  unsigned thread;
  unsigned simd;
  unsigned lane;
};
// Runs every thread of grid.x * grid.y * grid.z threadgroups, one threadgroup after another.
void launch(uint3_plain grid, int threads, const std::vector<Region*>& regions,
            const std::function<void(const ThreadPosition&)>& kernel);

}  // namespace metal_host
