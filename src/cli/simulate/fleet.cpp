#include "cli/simulate/fleet.h"

#include <algorithm>
#include <limits>

#include "cli/simulate/random.h"

namespace bodega::cli {
namespace {

// Requests that a machine may have more than another before a conversation moves.
constexpr int kMayHaveMore = 8;
// A shared prompt is kept by so many machines, so that a popular one is not one machine's alone.
constexpr std::uint64_t kKeepers = 4;

std::size_t pick(std::uint64_t value, std::size_t machines) {
  return static_cast<std::size_t>(SimRandom(value).next() % machines);
}

}  // namespace

Fleet::Fleet(const SimConfig& config, int machines, Routing routing)
    : config_(config), routing_(routing), machines_(static_cast<std::size_t>(machines)) {}

SimMachine& Fleet::at(std::size_t index, double now_s) {
  std::unique_ptr<SimMachine>& machine = machines_[index];
  if (machine == nullptr) machine = std::make_unique<SimMachine>(config_);
  machine->advance(now_s);
  return *machine;
}

std::size_t Fleet::route(const SimRequest& request) {
  const std::size_t count = machines_.size();
  if (count == 1) return 0;
  if (routing_ == Routing::kRandom) return pick(requests_, count);
  const std::uint64_t conversation = request.prompt.back().content;
  const std::uint64_t keeper = requests_ % kKeepers;
  const std::size_t shared = pick(request.prompt.front().content * kKeepers + keeper, count);
  const auto home = homes_.find(conversation);
  const std::size_t first = home != homes_.end() ? home->second : shared;
  const std::size_t second = home != homes_.end() ? shared : pick(conversation, count);
  const int mine = at(first, request.arrival_s).outstanding();
  const int other = at(second, request.arrival_s).outstanding();
  return homes_[conversation] = mine > other + kMayHaveMore ? second : first;
}

void Fleet::count_new(const SimRequest& request) {
  for (const SimPiece& piece : request.prompt) {
    int& seen = seen_[piece.content];
    new_tokens_ += static_cast<std::uint64_t>(std::max(0, piece.tokens - seen));
    seen = std::max(seen, piece.tokens);
  }
  seen_[request.prompt.back().content] += request.output_tokens;
}

void Fleet::run(const SimSource& source) {
  while (const std::optional<SimRequest> request = source()) {
    ++requests_;
    count_new(*request);
    at(route(*request), request->arrival_s).submit(*request);
  }
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i] != nullptr) at(i, std::numeric_limits<double>::infinity());
  }
}

SimStats Fleet::stats() const {
  SimStats stats;
  for (const auto& machine : machines_) {
    if (machine != nullptr) stats.merge(machine->stats());
  }
  stats.new_tokens = new_tokens_;
  return stats;
}

}  // namespace bodega::cli
