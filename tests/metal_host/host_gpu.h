#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/metal/gpu.h"
#include "shim/metal.h"

namespace metal_host {

// Memory of the emulated GPU, unreadable bytes (NaN as fp32 and fp16) until something is written.
class HostMemory : public bodega::ops::metal::Memory {
 public:
  explicit HostMemory(std::size_t bytes)
      : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)),
        bytes_(bytes),
        read("memory", Region::Kind::kConstant, lines_.data(), bytes),
        write("memory", Region::Kind::kDevice, lines_.data(), bytes) {
    std::memset(lines_.data(), 0xFF, lines_.size() * sizeof(Line));
  }
  std::uint8_t* data() override { return reinterpret_cast<std::uint8_t*>(lines_.data()); }
  std::size_t bytes() const override { return bytes_; }

 private:
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  std::vector<Line> lines_;
  std::size_t bytes_;

 public:
  Region read;
  Region write;
};

// Runs the backend's dispatches through the shim. Kernels are registered under the name the backend
// asks for; one that is missing, or bound unlike its parameters, is a Failure.
class HostGpu : public bodega::ops::metal::Gpu {
 public:
  using Dispatch = bodega::ops::metal::Dispatch;

  std::unique_ptr<bodega::ops::metal::Memory> allocate(std::size_t bytes) override {
    return std::make_unique<HostMemory>(bytes);
  }
  void retire(std::unique_ptr<bodega::ops::metal::Memory>) override {}  // all has run
  void dispatch(const Dispatch& dispatch) override {
    const std::string name = dispatch.kernel.library() + " " + dispatch.kernel.function;
    const auto found = kernels_.find(name);
    if (found == kernels_.end()) throw Failure("no kernel is registered as " + name);
    found->second(dispatch);
  }

  template <class P, class... Args>
  void add(const std::string& name, void (*kernel)(const P&, Args...)) {
    kernels_[name] = [=](const Dispatch& d) {
      if (d.param_bytes != sizeof(P)) throw Failure(name + ": parameters of another kernel");
      if (d.arguments.size() + kPositions != sizeof...(Args)) {
        throw Failure(name + ": " + std::to_string(d.arguments.size()) + " arguments");
      }
      run<P, Args...>(
          kernel, d,
          std::make_index_sequence<sizeof...(Args) - static_cast<std::size_t>(kPositions)>());
    };
  }

 private:
  static constexpr int kPositions = 4;  // that end every kernel's parameters

  template <class T>
  struct Pointee;
  template <class T>
  struct Pointee<msl::Ptr<T>> {
    using Type = T;
  };

  template <class T>
  static msl::Ptr<T> pointer(const bodega::ops::metal::Argument& argument) {
    auto& memory = static_cast<HostMemory&>(*argument.memory);
    if (argument.written == std::is_const_v<T>) {
      throw Failure("an argument is bound for reading that is written, or the other way round");
    }
    Region* region = std::is_const_v<T> ? &memory.read : &memory.write;
    return {reinterpret_cast<T*>(memory.data() + argument.offset), region};
  }

  template <class P, class... Args, std::size_t... I>
  static void run(void (*kernel)(const P&, Args...), const Dispatch& d, std::index_sequence<I...>) {
    using All = std::tuple<Args...>;
    std::vector<Region*> written;
    for (const auto& argument : d.arguments) {
      if (argument.written) written.push_back(&static_cast<HostMemory&>(*argument.memory).write);
    }
    const auto pointers = std::make_tuple(
        pointer<typename Pointee<std::tuple_element_t<I, All>>::Type>(d.arguments[I])...);
    const P& params = *static_cast<const P*>(d.params);
    launch({static_cast<unsigned>(d.grid.x), static_cast<unsigned>(d.grid.y), 1}, d.threads,
           written, [&](const ThreadPosition& at) {
             kernel(params, std::get<I>(pointers)..., at.group, at.thread, at.simd, at.lane);
           });
  }

  std::map<std::string, std::function<void(const Dispatch&)>> kernels_;
};

}  // namespace metal_host
