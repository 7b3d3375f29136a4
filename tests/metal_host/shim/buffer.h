#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shim/metal.h"

namespace metal_host {

// Memory of a test that a kernel reaches through checked pointers.
template <class T>
class Buffer {
 public:
  Buffer(std::string name, std::vector<T> values) : values_(std::move(values)) {
    const std::size_t bytes = values_.size() * sizeof(T);
    read_ = std::make_unique<Region>(name, Region::Kind::kConstant, values_.data(), bytes);
    write_ = std::make_unique<Region>(name, Region::Kind::kDevice, values_.data(), bytes);
  }
  Buffer(std::string name, std::size_t count) : Buffer(std::move(name), std::vector<T>(count)) {}

  msl::Ptr<const T> in() const { return {values_.data(), read_.get()}; }
  msl::Ptr<T> out() { return {values_.data(), write_.get()}; }
  Region* region() { return write_.get(); }
  std::vector<T>& values() { return values_; }
  const std::vector<T>& values() const { return values_; }

 private:
  std::vector<T> values_;
  std::unique_ptr<Region> read_;   // any write fails
  std::unique_ptr<Region> write_;  // reads and writes are checked for races
};

}  // namespace metal_host
