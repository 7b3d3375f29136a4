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
  if (!failure.empty()) {
    fail_step(plan, failure);
  } else {
    const auto vocab = static_cast<std::size_t>(runner_.vocab_size());
    for (const schedule::PlannedSlice& slice : plan.slices) {
      const auto found = places_.find(slice.id);
      if (found == places_.end()) continue;  // ended while its row was running
      const Place place = found->second;
      try {
        collect_slice(place, slice,
                      logits.subspan(static_cast<std::size_t>(slice.first_sample) * vocab,
                                     static_cast<std::size_t>(slice.sample_count) * vocab));
      } catch (const std::exception& error) {
        end_request(*place.request, core::FinishReason::kError, ErrorKind::kInternal, error.what());
      }
    }
  }
  idle_ = plan.empty() && touched_.empty();
  publish_stats();
}

// logits: [slice.sample_count, vocab]
void StepLoop::collect_slice(const Place& place, const schedule::PlannedSlice& slice,
                             std::span<const float> logits) {
  scheduler_.commit(slice);
  const int prompt_rows = slice.sample_count - (slice.last_token ? 1 : 0);
  if (prompt_rows > 0) take_prompt_logprobs(*place.request, logits, prompt_rows);
  if (slice.last_token) {
    choose(place, logits.last(static_cast<std::size_t>(runner_.vocab_size())));
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

// Appends one token to a choice and decides whether it was the last by id or count.
void StepLoop::choose(const Place& place, std::span<const float> logits) {
  Choice& choice = *place.choice;
  LiveRequest& live = *place.request;
  const core::Request& request = live.request;
  touch(live);
  live.last_token_s = monotonic_seconds();
  if (live.first_token_s == 0) live.first_token_s = live.last_token_s;
  if (request.stop.max_tokens > 0) {
    const core::TokenId id = next_token(place, logits);
    core::TokenLogprob token;
    token.id = id;
    if (request.sampling.logprobs) {
      token = sample::token_logprob(logits, id, request.sampling.top_logprobs);
    }
    choice.output.push_back(id);
    choice.fresh.push_back(std::move(token));
    if (choice.history) choice.history->add(id);
    ++counters_.generated_tokens;
    choice.ended_by_token = std::find(live.ends.begin(), live.ends.end(), id) != live.ends.end();
    if (choice.ended_by_token) choice.ended = core::FinishReason::kStop;
  }
  const bool full = static_cast<int>(choice.output.size()) >= request.stop.max_tokens;
  if (full && !choice.ended) choice.ended = core::FinishReason::kLength;
  if (choice.ended) {
    scheduler_.remove(choice.sequence);
  } else {
    scheduler_.append(choice.sequence, choice.output.back());
  }
}

core::TokenId StepLoop::next_token(const Place& place, std::span<const float> logits) {
  const Choice& choice = *place.choice;
  const core::Request& request = place.request->request;
  const std::size_t made = choice.output.size();
  if (made < request.scripted.size()) return request.scripted[made];
  if (!request.scripted.empty() && !config_.end_tokens.empty()) return config_.end_tokens.front();
  sample::Row row;
  row.logits = logits;
  row.params = &request.sampling;
  row.history = choice.history ? &*choice.history : nullptr;
  if (static_cast<int>(made) < request.stop.min_tokens) row.banned = place.request->ends;
  row.choice = choice.index;
  row.position = static_cast<int>(request.prompt.size() + made);
  return sampler_.sample(row);
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
