#pragma once

#include <vector>

#include "api/json.h"
#include "core/output.h"

namespace bodega::api {

// What the engine requests of one answer have used so far, added up.
class UsageSum {
 public:
  explicit UsageSum(int prompts) : parts_(prompts) {}

  void set(int prompt, const core::RequestOutput& output);
  void add_reasoning_tokens(std::size_t count) { reasoning_tokens_ += count; }
  json::object usage() const;    // OpenAI's object
  json::object timings() const;  // seconds and rates; null where nothing was measured

 private:
  struct Part {
    core::Usage usage;
    core::Timings timings;
  };
  std::vector<Part> parts_;
  std::size_t reasoning_tokens_ = 0;
};

}  // namespace bodega::api
