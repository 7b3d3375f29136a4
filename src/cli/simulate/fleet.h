#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "cli/simulate/sim_machine.h"

namespace bodega::cli {

enum class Routing { kPrefix, kRandom };

// Machines behind a router that sees prompts, not caches: a conversation goes to the machine that
// had its last turn, a new one to a machine that its shared prompt names, unless that has much more
// to do than another.
class Fleet {
 public:
  Fleet(const SimConfig& config, int machines, Routing routing);

  void run(const SimSource& source);  // to the end of the last answer
  SimStats stats() const;
  int machines() const { return static_cast<int>(machines_.size()); }

 private:
  std::size_t route(const SimRequest& request);
  SimMachine& at(std::size_t index, double now_s);
  void count_new(const SimRequest& request);

  SimConfig config_;
  Routing routing_;
  std::vector<std::unique_ptr<SimMachine>> machines_;     // made when the first request comes
  std::unordered_map<std::uint64_t, std::size_t> homes_;  // of conversations
  std::unordered_map<std::uint64_t, int> seen_;           // tokens of a content
  std::uint64_t requests_ = 0;
  std::uint64_t new_tokens_ = 0;
};

}  // namespace bodega::cli
