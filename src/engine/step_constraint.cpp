#include <algorithm>
#include <exception>

#include "engine/step_loop.h"

namespace bodega::engine {
namespace {

void set(std::vector<std::uint32_t>& words, core::TokenId id, bool value) {
  const auto bit = static_cast<std::size_t>(id);
  if (bit / 32 >= words.size()) return;
  const std::uint32_t mask = std::uint32_t{1} << (bit % 32);
  words[bit / 32] = value ? words[bit / 32] | mask : words[bit / 32] & ~mask;
}

// Before min_tokens no end is chosen, as long as the grammar allows anything else.
void ban_ends(const std::vector<core::TokenId>& ends, std::vector<std::uint32_t>& words) {
  std::vector<std::uint32_t> without = words;
  for (const core::TokenId id : ends) set(without, id, false);
  for (const std::uint32_t word : without) {
    if (word == 0) continue;
    words = std::move(without);
    return;
  }
}

void find_allowed(const LiveRequest& request, Choice& choice) noexcept {
  Allowed& allowed = choice.allowed;
  if (allowed.position == choice.output.size()) return;  // the step before failed
  try {
    allowed.next = allowed.matcher->allowed(allowed.words);
    const bool early = static_cast<int>(choice.output.size()) < request.request.stop.min_tokens;
    if (allowed.next == core::NextTokens::kListed && early) ban_ends(request.ends, allowed.words);
  } catch (const std::exception& error) {
    allowed.failure = error.what();
  }
  allowed.position = choice.output.size();
}

bool contains(const std::vector<core::TokenId>& ids, core::TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

// What the tokens of the rows in flight may be. It needs the tokens before them and nothing of the
// device, so it runs beside it, one answer a thread.
void StepLoop::bind(const schedule::StepPlan& plan) {
  std::vector<Place> bound;
  for (const schedule::PlannedSlice& slice : plan.slices) {
    if (!slice.last_token) continue;
    const auto found = places_.find(slice.id);
    if (found == places_.end() || found->second.choice->allowed.matcher == nullptr) continue;
    bound.push_back(found->second);
  }
  drawer_.for_each(static_cast<int>(bound.size()), [&bound](int i) {
    const Place& place = bound[static_cast<std::size_t>(i)];
    find_allowed(*place.request, *place.choice);
  });
}

// Binds the row of a choice; a script's token gives way where the grammar does not allow it.
void StepLoop::restrict_draw(const Place& place, TokenDraw& draw) {
  const Allowed& allowed = place.choice->allowed;
  if (!allowed.failure.empty()) {
    draw.error = allowed.failure;
    draw.error_kind = ErrorKind::kInvalidRequest;
  }
  if (allowed.next == core::NextTokens::kListed) {
    draw.row.banned = {};
    draw.row.allowed = allowed.words;
    if (draw.scripted && !sample::is_allowed(allowed.words, *draw.scripted)) draw.scripted.reset();
  } else if (allowed.next == core::NextTokens::kAnyButEnd) {
    draw.row.banned = place.request->ends;
    if (draw.scripted && contains(place.request->ends, *draw.scripted)) draw.scripted.reset();
  }
}

// Tells the grammar of a token that is no end; true when the answer is complete. A failure is told
// with the next token.
bool StepLoop::follow(Choice& choice, core::TokenId id) {
  Allowed& allowed = choice.allowed;
  if (allowed.matcher == nullptr) return false;
  try {
    return allowed.matcher->accept(id);
  } catch (const std::exception& error) {
    allowed.failure = error.what();
    allowed.position = choice.output.size();
    return false;
  }
}

}  // namespace bodega::engine
