#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "sample/row.h"

namespace bodega::sample {
namespace {

// Changes single entries of a row.
class Editor {
 public:
  explicit Editor(std::vector<float>& logits) : logits_(logits) {}

  template <typename Change>
  void edit(TokenId id, Change change) {
    const auto index = static_cast<std::size_t>(id);
    if (id >= 0 && index < logits_.size()) logits_[index] = change(logits_[index]);
  }

 private:
  std::vector<float>& logits_;
};

void penalize(const core::SamplingParams& params, const History& history, Editor& editor) {
  const float repetition = params.repetition_penalty;
  auto repeat = [repetition](float x) { return x > 0.0F ? x / repetition : x * repetition; };
  const auto& output = history.output_counts();
  for (const TokenId id : history.prompt_ids()) {
    if (!output.contains(id)) editor.edit(id, repeat);
  }
  for (const auto& [id, count] : output) {
    const float cost =
        params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
    editor.edit(id, [&](float x) { return repeat(x) - cost; });
  }
}

// The logits of the allowed ids; minus infinity elsewhere.
void copy_allowed(std::span<const float> logits, std::span<const std::uint32_t> allowed,
                  std::vector<float>& out) {
  out.assign(logits.size(), -std::numeric_limits<float>::infinity());
  const std::size_t words = std::min(allowed.size(), (logits.size() + 31) / 32);
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint32_t bits = allowed[word]; bits != 0; bits &= bits - 1) {
      const std::size_t id = 32 * word + static_cast<std::size_t>(std::countr_zero(bits));
      if (id < logits.size()) out[id] = logits[id];
    }
  }
}

}  // namespace

std::span<const float> adjusted_logits(const Row& row, std::vector<float>& scratch) {
  const core::SamplingParams& params = *row.params;
  const bool penalized = params.needs_history() && row.history != nullptr;
  const bool changes = penalized || !params.logit_bias.empty() || !row.banned.empty();
  if (!changes && row.allowed.empty()) return row.logits;
  if (row.allowed.empty()) {
    scratch.assign(row.logits.begin(), row.logits.end());
  } else {
    copy_allowed(row.logits, row.allowed, scratch);
  }
  if (!changes) return scratch;
  Editor editor(scratch);
  if (penalized) penalize(params, *row.history, editor);
  for (const auto& [id, bias] : params.logit_bias) {
    editor.edit(id, [bias = bias](float x) { return x + bias; });
  }
  for (const TokenId id : row.banned) {
    editor.edit(id, [](float) { return -std::numeric_limits<float>::infinity(); });
  }
  return scratch;
}

}  // namespace bodega::sample
