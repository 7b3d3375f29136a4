#include "engine/step_loop.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"

namespace bodega::engine {
namespace {

std::vector<core::BlockRef> block_refs(const Runner& runner) {
  std::vector<core::BlockRef> refs;
  refs.reserve(static_cast<std::size_t>(runner.block_count()));
  for (int block = 0; block < runner.block_count(); ++block)
    refs.push_back(runner.block_ref(block));
  return refs;
}

schedule::Limits limits(const EngineConfig& config) {
  return {config.max_step_tokens, config.max_sequences, config.max_prompt_rows};
}

}  // namespace

StepLoop::StepLoop(const EngineConfig& config, const TextCodec& codec, Runner& runner, Inbox& inbox,
                   StatsBoard& board)
    : config_(config),
      codec_(codec),
      runner_(runner),
      inbox_(inbox),
      board_(board),
      cache_({runner.block_count(), config.prefix_cache, config.model_salt}),
      scheduler_(limits(config), cache_, block_refs(runner)),
      drawer_(config.sampling_threads > 0 ? config.sampling_threads : cpu_count()) {
  publish_stats();
}

void StepLoop::run() {
  while (receive()) {
    Step step = schedule();
    launch(step);   // the device works from here on
    postprocess();  // meanwhile: text, stop strings and delivery of the step before
    collect(step);  // waits for the device: the next token ids
  }
  end_all(core::FinishReason::kCancelled, "The model was unloaded.");
}

// Waits only when there is nothing to do. False once the inbox is closed.
bool StepLoop::receive() {
  board_.set_busy(!idle_);
  Inbox::Mail mail = inbox_.take(idle_, next_expiry());
  board_.set_busy(true);
  for (Submission& submission : mail.submissions) start(std::move(submission));
  for (const auto& [id, control] : mail.controls) apply(id, control);
  if (mail.cancel_all) end_all(core::FinishReason::kCancelled, "The server is shutting down.");
  expire_waiters();
  return !mail.closed;
}

StepLoop::Step StepLoop::schedule() {
  Step step{scheduler_.schedule(), {}};
  note_starts(step.plan);
  return step;
}

void StepLoop::launch(Step& step) {
  if (step.plan.empty()) return;
  ++counters_.steps;
  try {
    if (config_.before_step) config_.before_step(counters_.steps);
    runner_.launch(step.plan.batch);
  } catch (const std::exception& error) {
    step.failure = error.what();
    if (step.failure.empty()) step.failure = "unknown error";
  }
}

void StepLoop::postprocess() {
  for (const core::RequestId id : std::exchange(touched_, {})) {
    const auto found = requests_.find(id);
    if (found != requests_.end()) deliver(*found->second);
  }
}

void StepLoop::start(Submission&& submission) {
  const core::RequestId id = submission.request.id;
  auto& owned = requests_[id];
  owned = std::make_unique<LiveRequest>(std::move(submission));
  LiveRequest& request = *owned;
  queue_.push_back(id);
  request.usage.prompt_tokens = static_cast<int>(request.request.prompt.size());
  const core::StopParams& stop = request.request.stop;
  request.ends = stop.stop_token_ids;
  if (!stop.ignore_eos) {
    request.ends.insert(request.ends.end(), config_.end_tokens.begin(), config_.end_tokens.end());
  }
  try {
    for (int i = 0; i < request.request.n; ++i) add_choice(request, i);
  } catch (const std::exception& error) {
    end_request(request, core::FinishReason::kError, ErrorKind::kInternal, error.what());
  }
}

void StepLoop::add_choice(LiveRequest& live, int index) {
  constexpr std::size_t kContextTokens = 16;  // enough for a decoder to know what came before
  const core::Request& request = live.request;
  const std::span<const core::TokenId> prompt(request.prompt);
  AnswerStream stream(codec_.detokenizer(prompt.last(std::min(prompt.size(), kContextTokens))),
                      request.stop);
  auto choice = std::make_unique<Choice>(Choice{index, ++last_sequence_, std::move(stream)});
  if (request.sampling.needs_history()) choice->history.emplace(prompt);
  schedule::SequenceSpec spec;
  spec.id = choice->sequence;
  spec.prompt = request.prompt;
  spec.cache_salt = request.cache_salt;
  spec.priority = request.priority;
  spec.wants_prompt_rows = request.prompt_logprobs && index == 0;
  spec.leader = index == 0 ? schedule::kNoSequence : live.choices.front()->sequence;
  scheduler_.add(std::move(spec));
  places_[choice->sequence] = {&live, choice.get()};
  live.choices.push_back(std::move(choice));
}

void StepLoop::apply(core::RequestId id, const Control& control) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  if (control.cancel) {
    forget(id);
    return;
  }
  if (!control.paused) return;
  for (const auto& choice : found->second->choices) {
    scheduler_.pause(choice->sequence, *control.paused);
  }
}

std::optional<double> StepLoop::next_expiry() const {
  for (const core::RequestId id : queue_) {
    const auto found = requests_.find(id);
    if (found != requests_.end() && !found->second->started()) {
      return found->second->submitted_s + config_.queue_timeout_s;
    }
  }
  return std::nullopt;
}

void StepLoop::expire_waiters() {
  const double now = monotonic_seconds();
  while (!queue_.empty()) {
    const auto found = requests_.find(queue_.front());
    const bool waits = found != requests_.end() && !found->second->started();
    if (waits && now < found->second->submitted_s + config_.queue_timeout_s) return;
    if (waits) {
      end_request(*found->second, core::FinishReason::kError, ErrorKind::kUnavailable,
                  "The request waited in the queue for longer than " +
                      std::to_string(config_.queue_timeout_s) + " s: try again later.");
    }
    queue_.pop_front();
  }
}

void StepLoop::note_starts(const schedule::StepPlan& plan) {
  const double now = monotonic_seconds();
  for (const schedule::PlannedSlice& slice : plan.slices) {
    LiveRequest& request = *places_.at(slice.id).request;
    if (request.started()) continue;
    request.started_s = now;
    request.usage.cached_tokens = scheduler_.find(slice.id)->reused;
    counters_.prompt_tokens += static_cast<std::uint64_t>(request.usage.prompt_tokens);
    counters_.cached_tokens += static_cast<std::uint64_t>(request.usage.cached_tokens);
    board_.request_started(now);
  }
}

void StepLoop::publish_stats() {
  counters_.preempted = scheduler_.preempted();
  counters_.blocks_total = cache_.pool().total();
  counters_.blocks_free = cache_.pool().available();
  counters_.blocks_cached = cache_.pool().cached();
  board_.publish(counters_, scheduler_.spare_sequences());
}

}  // namespace bodega::engine
