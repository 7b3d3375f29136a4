#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/request.h"

namespace bodega::cli {

// A run of tokens that are all determined by its content: equal contents are equal text.
struct SimPiece {
  std::uint64_t content = 0;
  int tokens = 0;
};

// What a simulation knows of a request: who it shares tokens with, and how long it is.
struct SimRequest {
  double arrival_s = 0;
  std::vector<SimPiece> prompt;  // the answer goes on with the last piece's content
  int output_tokens = 0;         // >= 1
  core::Priority priority = core::Priority::kNormal;

  int prompt_tokens() const {
    int sum = 0;
    for (const SimPiece& piece : prompt) sum += piece.tokens;
    return sum;
  }
};

// Token `index` of a content.
core::TokenId sim_token(std::uint64_t content, int index);
std::vector<core::TokenId> sim_tokens(std::span<const SimPiece> pieces);

// Requests in order of arrival; nullopt: there are no more.
using SimSource = std::function<std::optional<SimRequest>()>;

// The synthetic mixes:
//   chat       conversations whose turns come back with all that was said, a few system prompts
//   agents     loops of short turns behind long prompts of tools, shared by many
//   documents  a long text that is asked about once to five times, and then never again
//   bursts     short questions, ten times as many for a tenth of the time
// `rate`: requests a second on average. Throws Error(kConfig) for another name.
SimSource make_mix(std::string_view name, double rate, int requests, std::uint64_t seed);
std::span<const std::string_view> mix_names();

}  // namespace bodega::cli
