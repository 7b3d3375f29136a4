#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "engine/step_loop.h"
#include "sample/logprobs.h"

namespace bodega::engine {

// Turns the step's logits into the next token ids; what can wait (text) is left to postprocess().
void StepLoop::collect(const Step& step) {
  const schedule::StepPlan& plan = step.plan;
  std::string failure = step.failure;
  std::span<const float> logits;
  if (!plan.empty() && failure.empty()) {
    try {
      logits = runner_.logits();
    } catch (const std::exception& error) {
      failure = error.what();
      if (failure.empty()) failure = "unknown error";
    }
  }
  if (failure.empty()) {
    std::vector<TokenDraw> draws = commit(plan, logits);
    drawer_.draw(draws);
    for (TokenDraw& draw : draws) accept(draw);
  } else {
    fail_step(plan, failure);
  }
  idle_ = plan.empty() && touched_.empty();
  learn(step);
  publish_stats();
}

// The step's rows are in the cache. Returns the rows that become tokens; `logits` is
// [sampled rows, vocab].
std::vector<TokenDraw> StepLoop::commit(const schedule::StepPlan& plan,
                                        std::span<const float> logits) {
  const auto vocab = static_cast<std::size_t>(runner_.vocab_size());
  std::vector<TokenDraw> draws;
  for (const schedule::PlannedSlice& slice : plan.slices) {
    const auto found = places_.find(slice.id);
    if (found == places_.end()) continue;  // ended while its row was running
    const Place& place = found->second;
    scheduler_.commit(slice);
    const auto rows = logits.subspan(static_cast<std::size_t>(slice.first_sample) * vocab,
                                     static_cast<std::size_t>(slice.sample_count) * vocab);
    const int prompt_rows = slice.sample_count - (slice.last_token ? 1 : 0);
    if (prompt_rows > 0) take_prompt_logprobs(*place.request, rows, prompt_rows);
    if (!slice.last_token) continue;
    touch(*place.request);
    if (place.request->request.stop.max_tokens == 0) {
      place.choice->ended = core::FinishReason::kLength;
      scheduler_.remove(slice.id);
    } else {
      draws.push_back(prepare(place, rows.last(vocab)));
    }
  }
  return draws;
}

TokenDraw StepLoop::prepare(const Place& place, std::span<const float> logits) const {
  const Choice& choice = *place.choice;
  const core::Request& request = place.request->request;
  const std::size_t made = choice.output.size();
  TokenDraw draw;
  draw.sequence = choice.sequence;
  draw.row.logits = logits;
  draw.row.params = &request.sampling;
  draw.row.history = choice.history ? &*choice.history : nullptr;
  if (static_cast<int>(made) < request.stop.min_tokens) draw.row.banned = place.request->ends;
  draw.row.choice = choice.index;
  draw.row.position = static_cast<int>(request.prompt.size() + made);
  if (made < request.scripted.size()) {
    draw.scripted = request.scripted[made];
  } else if (!request.scripted.empty() && !config_.end_tokens.empty()) {
    draw.scripted = config_.end_tokens.front();
  }
  if (choice.allowed.matcher != nullptr) restrict_draw(place, draw);
  return draw;
}

// Appends a token to its choice and decides whether it was the last, by id or count.
void StepLoop::accept(TokenDraw& draw) {
  const auto found = places_.find(draw.sequence);
  if (found == places_.end()) return;  // another choice's error ended the request
  LiveRequest& live = *found->second.request;
  Choice& choice = *found->second.choice;
  if (!draw.error.empty()) {
    end_request(live, core::FinishReason::kError, draw.error_kind, draw.error);
    return;
  }
  live.last_token_s = monotonic_seconds();
  if (live.first_token_s == 0) live.first_token_s = live.last_token_s;
  ++counters_.generated_tokens;
  const core::TokenId id = draw.token.id;
  choice.ended_by_token = std::find(live.ends.begin(), live.ends.end(), id) != live.ends.end();
  choice.output.push_back(id);
  choice.fresh.push_back(std::move(draw.token));
  if (choice.history) choice.history->add(id);
  if (choice.ended_by_token || follow(choice, id)) {
    choice.ended = core::FinishReason::kStop;
  } else if (static_cast<int>(choice.output.size()) >= live.request.stop.max_tokens) {
    choice.ended = core::FinishReason::kLength;
  }
  if (choice.ended) {
    scheduler_.remove(choice.sequence);
  } else {
    scheduler_.append(choice.sequence, id);
  }
}

void StepLoop::take_prompt_logprobs(LiveRequest& request, std::span<const float> logits, int rows) {
  const auto vocab = static_cast<std::size_t>(runner_.vocab_size());
  for (int row = 0; row < rows; ++row) {
    const core::TokenId next = request.request.prompt[request.prompt_logprobs.size() + 1];
    request.prompt_logprobs.push_back(
        sample::token_logprob(logits.subspan(static_cast<std::size_t>(row) * vocab, vocab), next,
                              request.request.sampling.top_logprobs));
  }
}

void StepLoop::fail_step(const schedule::StepPlan& plan, const std::string& why) {
  log_error("a step failed; its requests end", {{"step", counters_.steps}, {"reason", why}});
  for (const schedule::PlannedSlice& slice : plan.slices) {
    const auto found = places_.find(slice.id);
    if (found == places_.end()) continue;
    end_request(*found->second.request, core::FinishReason::kError, ErrorKind::kInternal,
                "The model failed while it computed this answer: " + why);
  }
}

}  // namespace bodega::engine
