#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace bodega::engine {

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool include) : include_(include) {
  automata_.reserve(stops.size());
  for (const std::string& stop : stops) {
    if (stop.empty()) continue;
    Automaton automaton{stop, {0}, 0};
    automaton.fallback.reserve(stop.size());
    for (std::size_t i = 1; i < stop.size(); ++i) {
      std::size_t border = automaton.fallback[i - 1];
      while (border > 0 && stop[i] != stop[border]) border = automaton.fallback[border - 1];
      automaton.fallback.push_back(stop[i] == stop[border] ? border + 1 : 0);
    }
    automata_.push_back(std::move(automaton));
  }
}

std::size_t StopMatcher::advance(const Automaton& automaton, char byte) {
  std::size_t state = automaton.state;
  while (state > 0 && automaton.stop[state] != byte) state = automaton.fallback[state - 1];
  return automaton.stop[state] == byte ? state + 1 : 0;
}

// The longest stop string that ends with this byte, or nullptr.
const StopMatcher::Automaton* StopMatcher::step(char byte) {
  const Automaton* longest = nullptr;
  for (Automaton& automaton : automata_) {
    automaton.state = advance(automaton, byte);
    const bool complete = automaton.state == automaton.stop.size();
    if (complete && (longest == nullptr || longest->stop.size() < automaton.stop.size())) {
      longest = &automaton;
    }
  }
  return longest;
}

std::string StopMatcher::feed(std::string_view text) {
  if (matched()) return {};
  if (automata_.empty()) return std::string(text);
  for (const char byte : text) {
    held_.push_back(byte);
    const Automaton* complete = step(byte);
    if (complete == nullptr) continue;
    matched_ = &complete->stop;
    if (!include_) held_.resize(held_.size() - matched_->size());
    return std::exchange(held_, {});
  }
  std::size_t hold = 0;
  for (const Automaton& automaton : automata_) hold = std::max(hold, automaton.state);
  std::string released = held_.substr(0, held_.size() - hold);
  held_.erase(0, released.size());
  return released;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace bodega::engine
