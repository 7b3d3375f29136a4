#include "engine/step_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "engine/disk/open_store.h"

namespace bodega::engine {
namespace {

// The next start finds on the SSD what could be written in so long.
constexpr double kFlushSeconds = 4;

std::vector<core::BlockRef> block_refs(const Runner& runner) {
  std::vector<core::BlockRef> refs;
  refs.reserve(static_cast<std::size_t>(runner.block_count()));
  for (int block = 0; block < runner.block_count(); ++block)
    refs.push_back(runner.block_ref(block));
  return refs;
}

schedule::Limits limits(const EngineConfig& config) {
  schedule::Limits limits;
  limits.max_step_tokens = config.max_step_tokens;
  limits.max_sequences = config.max_sequences;
  limits.max_prompt_rows = config.max_prompt_rows;
  limits.max_prefills = config.max_prefills;
  limits.gap.factor = config.max_gap_factor;
  limits.gap.seconds = config.max_gap_s;
  return limits;
}

cache::KvCache::Config cache_config(const EngineConfig& config, Runner& runner, bool has_disk) {
  cache::KvCache::Config cache;
  cache.blocks = runner.block_count();
  cache.prefix_cache = config.prefix_cache;
  cache.model_salt = config.model_salt;
  cache.ladder.disk_bytes = has_disk ? config.disk_bytes : 0;
  cache.blocks_per_file = blocks_per_file(runner);
  return cache;
}

// What one request at full length needs, and a quarter of the pool in any case.
int least_blocks(const EngineConfig& config, const Runner& runner) {
  const int longest = core::blocks_for(config.context_length) + 1;
  return std::max(runner.block_count() / 4, std::min(runner.block_count(), longest));
}

}  // namespace

StepLoop::StepLoop(const EngineConfig& config, const TextCodec& codec, Runner& runner, Inbox& inbox,
                   StatsBoard& board)
    : config_(config),
      codec_(codec),
      runner_(runner),
      inbox_(inbox),
      board_(board),
      prices_(runner.prices()),
      io_(open_block_io(config, runner, [&inbox] { inbox.wake(); })),
      cache_(cache_config(config, runner, io_ != nullptr), &cache::PrefixIndex::chain, prices_),
      scheduler_(limits(config), cache_, block_refs(runner), prices_),
      traffic_(cache_, scheduler_, prices_, std::move(io_)),
      valve_(cache_, runner, config.memory_pressure, least_blocks(config, runner)),
      drawer_(config.sampling_threads > 0 ? config.sampling_threads : cpu_count()) {
  publish_stats();
}

void StepLoop::run() {
  while (receive()) {
    Step step = schedule();
    launch(step);     // the device works from here on
    postprocess();    // meanwhile: text, stop strings and delivery of the step before
    bind(step.plan);  // and what grammars allow of the tokens to come
    collect(step);    // waits for the device: the next token ids
  }
  end_all(core::FinishReason::kCancelled, "The model was unloaded.");
  traffic_.flush(kFlushSeconds);
}

// Waits only when there is nothing to do. False once the inbox is closed.
bool StepLoop::receive() {
  board_.set_busy(!idle_);
  Inbox::Mail mail = inbox_.take(idle_, next_wake());
  board_.set_busy(true);
  for (Submission& submission : mail.submissions) start(std::move(submission));
  for (const auto& [id, control] : mail.controls) apply(id, control);
  if (mail.cancel_all) end_all(core::FinishReason::kCancelled, "The server is shutting down.");
  expire_waiters();
  traffic_.settle();
  valve_.poll(monotonic_seconds());
  return !mail.closed;
}

StepLoop::Step StepLoop::schedule() {
  Step step;
  step.plan = scheduler_.schedule();
  traffic_.start(step.plan);
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
  const auto context = prompt.last(std::min(prompt.size(), kContextTokens));
  AnswerStream stream(codec_.detokenizer(context, request.shown_tokens), request.stop);
  auto choice = std::make_unique<Choice>(Choice{index, ++last_sequence_, std::move(stream)});
  if (request.sampling.needs_history()) choice->history.emplace(prompt);
  if (!live.matchers.empty()) {
    choice->allowed.matcher = std::move(live.matchers[static_cast<std::size_t>(index)]);
    choice->allowed.words.resize((static_cast<std::size_t>(runner_.vocab_size()) + 31) / 32);
  }
  schedule::SequenceSpec spec;
  spec.id = choice->sequence;
  spec.prompt = request.prompt;
  spec.cache_salt = request.cache_salt;
  spec.user_key = request.user_key;
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

std::optional<double> StepLoop::next_wake() const {
  const std::optional<double> expiry = next_expiry();
  const double look = valve_.next_look_s();
  if (std::isinf(look)) return expiry;
  return expiry ? std::min(*expiry, look) : look;
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

// The whole round of the loop is what a stream waits for its next token, so that is what is priced.
void StepLoop::learn(const Step& step) {
  constexpr std::uint64_t kStepsAReport = 16;
  if (prices_ == nullptr || step.plan.empty() || !step.failure.empty()) return;
  prices_->observe_step(step.plan.shape, step.watch.seconds());
  if (counters_.steps % kStepsAReport == 1) counters_.cost = prices_->report();
}

// What a request takes from its start to its end; before the first has ended, a guess that rather
// lets one in too many than refuses one.
double StepLoop::service_seconds() const {
  if (service_s_ > 0 || prices_ == nullptr || places_.empty()) return service_s_;
  constexpr int kUsualAnswer = 256;
  double tokens = 0;
  cost::StepShape step;
  for (const auto& [id, place] : places_) {
    const schedule::Sequence* sequence = scheduler_.find(id);
    if (sequence == nullptr || !sequence->admitted) continue;
    tokens += std::min(place.request->request.stop.max_tokens, kUsualAnswer);
    step.add_rows(sequence->computed, 1);
  }
  if (step.rows == 0) return 0;
  step.sampled_rows = step.rows;
  return prices_->step_seconds(step) * tokens / step.rows;
}

void StepLoop::publish_stats() {
  counters_.preempted = scheduler_.preempted();
  counters_.blocks_total = cache_.pool().total();
  counters_.blocks_free = cache_.pool().available();
  counters_.blocks_cached = cache_.pool().idle();
  const cache::CacheCounters& cache = cache_.counters();
  counters_.hot_blocks = cache.hot_blocks;
  counters_.restored_blocks = cache.restored_blocks;
  counters_.spilled_blocks = cache.spilled_blocks;
  counters_.bad_blocks = cache.bad_blocks;
  counters_.disk_bytes = cache_.ladder().disk().bytes();
  counters_.blocks_given_back = cache_.pool().retired();
  counters_.memory_pressure = static_cast<int>(valve_.level());
  counters_.saved_s = cache_.ladder().saved_seconds();
  const int spare = scheduler_.spare_sequences();
  const double interval = spare > 0 ? 0 : service_seconds() / std::max(1, scheduler_.running());
  board_.publish(counters_, spare, interval);
}

}  // namespace bodega::engine
