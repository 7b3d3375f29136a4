#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// NVIDIA's driver and run-time compiler, looked up at run time: the build needs no CUDA toolkit,
// and one binary runs with and without a GPU. Names and layouts are those of the driver API
// (cuda.h).
namespace bodega::ops::cuda {

using StreamHandle = struct CUstream_st*;
using FunctionHandle = struct CUfunc_st*;
using ModuleHandle = struct CUmod_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraphExec_st*;
using DeviceAddress = unsigned long long;

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// The first device. Every call throws Error(kUnavailable) when memory is short and Error(kInternal)
// with the driver's own words otherwise.
class Driver {
 public:
  // Null where the driver, its device or the compiler is missing. Found once.
  static const Driver* find();

  int architecture() const { return architecture_; }  // 90 for an H200
  int multiprocessors() const { return multiprocessors_; }

  void make_current() const;
  std::size_t free_bytes() const;
  DeviceAddress allocate(std::size_t bytes) const;
  void release(DeviceAddress address) const noexcept;
  DeviceAddress allocate_async(std::size_t bytes, StreamHandle stream) const;
  void release_async(DeviceAddress address, StreamHandle stream) const noexcept;
  void* allocate_host(std::size_t bytes) const;  // pinned
  void release_host(void* memory) const noexcept;
  void upload(DeviceAddress to, const void* from, std::size_t bytes) const;
  void upload_async(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle s) const;
  void download(void* to, DeviceAddress from, std::size_t bytes) const;
  void download_async(void* to, DeviceAddress from, std::size_t bytes, StreamHandle s) const;
  void copy_async(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamHandle s) const;
  void clear_async(DeviceAddress at, std::size_t bytes, StreamHandle stream) const;

  EventHandle make_event() const;
  void record(EventHandle event, StreamHandle stream) const;
  void wait(EventHandle event) const;
  void release(EventHandle event) const noexcept;

  StreamHandle make_stream() const;
  void release(StreamHandle stream) const noexcept;
  // Launches on the stream between the two calls become a graph; null where it cannot be made.
  void begin_capture(StreamHandle stream) const;
  GraphHandle end_capture(StreamHandle stream) const;
  void launch(GraphHandle graph, StreamHandle stream) const;
  void release(GraphHandle graph) const noexcept;

  std::string compile(const std::string& source, const std::vector<std::string>& options) const;
  ModuleHandle load_module(const std::string& binary) const;
  FunctionHandle function(ModuleHandle module, const char* name) const;
  void allow_shared(FunctionHandle function, int bytes) const;
  // `arguments`: the kernel's one struct. `overlap`: may start before its predecessor has ended.
  void launch(FunctionHandle function, Grid grid, unsigned threads, unsigned shared,
              StreamHandle stream, const void* arguments, bool overlap) const;

 private:
  struct Calls;

  Driver() = default;
  bool open();
  void check(int result, const char* what) const;

  const Calls* calls_ = nullptr;
  void* context_ = nullptr;
  int architecture_ = 0;
  int multiprocessors_ = 0;
};

// Device memory that grows and frees itself.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) { reserve(bytes); }
  ~DeviceMemory() { release(); }
  DeviceMemory(DeviceMemory&& other) noexcept
      : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Contents are lost when it grows; growing waits for the device.
  void reserve(std::size_t bytes);
  DeviceAddress address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(address_);  // NOLINT: a device address
  }

 private:
  void release() noexcept;

  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace bodega::ops::cuda
