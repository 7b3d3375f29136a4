#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bodega::engine {

// Finds stop strings in text that arrives in pieces, in linear time (one Knuth-Morris-Pratt
// automaton a string). Its answer does not depend on where the pieces were cut: the match that ends
// first counts, of those that end together the longest.
class StopMatcher {
 public:
  // `include`: the stop string itself is part of the text that is let through.
  StopMatcher(const std::vector<std::string>& stops, bool include);

  // Takes more text and returns what can no longer be part of a stop string. Nothing after a match.
  std::string feed(std::string_view text);
  // No more text comes: what was held back.
  std::string flush();

  bool matched() const { return matched_ != nullptr; }
  const std::string& stop() const { return *matched_; }  // only when matched()
  std::size_t held_bytes() const { return held_.size(); }

 private:
  struct Automaton {
    std::string stop;
    std::vector<std::size_t> fallback;  // [i]: longest proper border of the first i + 1 bytes
    std::size_t state = 0;              // bytes matched so far
  };

  static std::size_t advance(const Automaton& automaton, char byte);
  const Automaton* step(char byte);

  std::vector<Automaton> automata_;
  bool include_;
  std::string held_;  // every unfinished match lies inside
  const std::string* matched_ = nullptr;
};

}  // namespace bodega::engine
