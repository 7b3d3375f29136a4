#include "schedule/scheduler.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "base/errors.h"

namespace bodega::schedule {
namespace {

// A step looks at so many of those that wait, the first ones: a longer queue costs no more.
constexpr std::size_t kWaitersLookedAt = 64;

}  // namespace

Scheduler::Scheduler(const Limits& limits, cache::KvCache& cache,
                     std::vector<core::BlockRef> block_refs, const cost::CostModel* prices)
    : limits_(limits), cache_(cache), block_refs_(std::move(block_refs)), prices_(prices) {
  if (limits_.max_step_tokens < kMinStepTokens || limits_.max_sequences < 1 ||
      limits_.max_prompt_rows < 1 || limits_.max_prefills < 1) {
    throw Error(ErrorKind::kConfig, "A step needs room for at least " +
                                        std::to_string(kMinStepTokens) +
                                        " tokens, one sequence, one prompt and one prompt row.");
  }
}

// --- Who exists ---

void Scheduler::add(SequenceSpec spec) {
  const std::uint64_t rank =
      order_.rank(spec.user_key, spec.priority, static_cast<int>(spec.prompt.size()));
  const SequenceId leader_id = spec.leader;
  auto owned = std::make_unique<Sequence>(std::move(spec), rank);
  Sequence& sequence = *owned;
  sequences_.emplace(sequence.id, std::move(owned));
  Sequence* leader = get(leader_id);
  if (leader != nullptr && !leader->prompt_done) {
    sequence.gated = true;
    leader->followers.push_back(sequence.id);
  } else {
    enqueue(sequence);
  }
}

void Scheduler::remove(SequenceId id) {
  Sequence* sequence = get(id);
  if (sequence == nullptr) return;
  dequeue(*sequence);
  for (const SequenceId follower : sequence->followers) {
    if (Sequence* freed = get(follower)) {
      freed->gated = false;
      enqueue(*freed);
    }
  }
  cache_.drop(sequence->table);
  sequences_.erase(id);
}

void Scheduler::pause(SequenceId id, bool paused) {
  Sequence* sequence = get(id);
  if (sequence == nullptr || sequence->paused == paused) return;
  sequence->paused = paused;
  if (paused) {
    dequeue(*sequence);
  } else {
    enqueue(*sequence);
  }
}

void Scheduler::enqueue(Sequence& sequence) {
  if (!sequence.paused && !sequence.gated) waiting_.emplace(key(sequence), &sequence);
}

void Scheduler::dequeue(Sequence& sequence) {
  (sequence.admitted ? running_ : waiting_).erase(key(sequence));
  sequence.admitted = false;
}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

Sequence* Scheduler::get(SequenceId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

int Scheduler::spare_sequences() const {
  return blocks_short_ ? 0 : limits_.max_sequences - running();
}

// --- The step ---

StepPlan Scheduler::schedule() {
  ++step_;
  shape_ = {};
  const int reserve = prefill_wanted() ? limits_.max_step_tokens / 4 : 0;
  const int decode_rows = plan_decodes(limits_.max_step_tokens - reserve);
  plan_prefills(limits_.max_step_tokens - decode_rows, decode_rows);

  StepPlan plan;
  for (const bool decodes : {true, false}) {
    for (const auto& [_, sequence] : running_) {
      if (sequence->planned > 0 && (sequence->pending() == 1) == decodes) {
        add_slice(*sequence, plan);
      }
    }
  }
  plan.shape.sampled_rows = static_cast<int>(plan.batch.sampled_rows.size());
  plan.restores = std::exchange(restores_, {});
  return plan;
}

bool Scheduler::prefill_wanted() const {
  return !waiting_.empty() || std::any_of(running_.begin(), running_.end(), [](const auto& entry) {
    return entry.second->pending() > 1 && !entry.second->restoring;
  });
}

// In order of arrival; when there are more than fit, those that have waited longest since a step.
std::vector<Sequence*> Scheduler::pick_decodes(int budget) const {
  std::vector<Sequence*> ready;
  for (const auto& [_, sequence] : running_) {
    if (sequence->pending() == 1 && !sequence->restoring) ready.push_back(sequence);
  }
  if (static_cast<int>(ready.size()) <= budget) return ready;
  std::sort(ready.begin(), ready.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->last_step, key(*a)) < std::pair(b->last_step, key(*b));
  });
  ready.resize(static_cast<std::size_t>(budget));
  std::sort(ready.begin(), ready.end(),
            [](const Sequence* a, const Sequence* b) { return key(*a) < key(*b); });
  return ready;
}

int Scheduler::plan_decodes(int budget) {
  int rows = 0;
  for (Sequence* sequence : pick_decodes(budget)) {
    // An earlier one may have taken this one's blocks, or it may have to give up its own.
    if (sequence->admitted && secure_next_block(*sequence)) {
      sequence->planned = 1;
      ++rows;
      shape_.add_rows(sequence->computed, 1);
      ++shape_.sampled_rows;
    }
  }
  return rows;
}

bool Scheduler::secure_next_block(Sequence& sequence) {
  while (!cache_.grow(sequence.table, static_cast<int>(sequence.tokens.size()))) {
    Sequence* loser = victim(sequence, false);
    if (loser == nullptr) loser = &sequence;
    give_up_blocks(*loser);
    if (loser == &sequence) return false;
  }
  return true;
}

// Whose blocks go: idle holders first (paused or waiting), then admitted ones that came after
// `keeper`; of these the one whose block is the cheapest to get back. nullptr: nobody but `keeper`
// and those that came before it holds any.
Sequence* Scheduler::victim(const Sequence& keeper, bool idle_only) const {
  Sequence* best = nullptr;
  auto worth = [this](const Sequence& s) { return std::tuple(!s.admitted, -price_of(s), key(s)); };
  for (const auto& [_, sequence] : sequences_) {
    if (sequence->table.blocks.empty() || sequence.get() == &keeper) continue;
    if (sequence->restoring) continue;  // its blocks would not be free before the read has ended
    if (sequence->admitted && (idle_only || key(*sequence) < key(keeper))) continue;
    if (best == nullptr || worth(*best) < worth(*sequence)) best = sequence.get();
  }
  return best;
}

// Seconds to have a sequence's positions again, a block: computed, or written out and read back.
double Scheduler::price_of(const Sequence& sequence) const {
  if (prices_ == nullptr || sequence.table.blocks.empty()) return 0;
  const auto blocks = static_cast<double>(sequence.table.blocks.size());
  double seconds = prices_->recompute_seconds(0, sequence.computed);
  if (cache_.ladder().has_disk() && prices_->machine().has_ssd()) {
    const auto bytes =
        static_cast<std::int64_t>(sequence.table.blocks.size()) * prices_->work().block_bytes;
    seconds = std::min(seconds, prices_->spill_seconds(bytes) + prices_->reload_seconds(bytes));
  }
  return seconds / blocks;
}

void Scheduler::give_up_blocks(Sequence& sequence) {
  cache_.drop(sequence.table);
  sequence.computed = 0;
  sequence.restoring = cache::kNoTransfer;
  if (!sequence.admitted) return;
  ++preempted_;
  dequeue(sequence);
  enqueue(sequence);
}

void Scheduler::plan_prefills(int row_ceiling, int decode_rows) {
  const Sequence* admitted = admit_oldest();
  std::vector<Sequence*> order;
  for (const auto& [_, sequence] : running_) {
    if (sequence->restoring) continue;
    if (sequence->pending() > 1 || sequence == admitted) order.push_back(sequence);
  }
  if (!blocks_short_ && running() < limits_.max_sequences) {
    const auto first = std::min(waiting_.size(), kWaitersLookedAt);
    std::for_each_n(waiting_.begin(), first, [&](auto& entry) { order.push_back(entry.second); });
  }
  if (order.empty()) return;
  PrefillBudget budget(limits_.gap, prices_, shape_,
                       {row_ceiling, limits_.max_prefills, decode_rows > 0});
  Sequence* oldest = *std::min_element(order.begin(), order.end(),
                                       [](auto* a, auto* b) { return key(*a) < key(*b); });
  plan_rows(*oldest, budget, true);
  std::sort(order.begin(), order.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->pending(), key(*a)) < std::pair(b->pending(), key(*b));
  });
  for (Sequence* sequence : order) {
    if (budget.spent()) break;
    plan_rows(*sequence, budget, false);
  }
}

// Adds rows of a sequence to the step, up to the budget or half of it, admitting it first where
// needed.
void Scheduler::plan_rows(Sequence& sequence, PrefillBudget& budget, bool half) {
  if (sequence.planned == 0 && !budget.takes_another()) return;
  if (!sequence.admitted && !try_admit(sequence)) return;
  if (sequence.restoring) return;  // admitted just now
  int chunk = sequence.pending();
  if (sequence.wants_prompt_rows && sequence.prompt_rows_seen + 1 < sequence.prompt_tokens) {
    chunk = std::min(chunk, limits_.max_prompt_rows);
  }
  const int fits = budget.rows_at(sequence.computed + sequence.planned);
  const int rows = std::min(half ? (fits + 1) / 2 : fits, chunk - sequence.planned);
  if (rows <= 0) return;
  budget.take(sequence.computed + sequence.planned, rows, sequence.planned == 0);
  sequence.planned += rows;
}

// The longest waiter gets the first go at free blocks; while it does not fit nobody else is let in,
// so that a stream of small prompts cannot keep a large one out.
Sequence* Scheduler::admit_oldest() {
  blocks_short_ = false;
  if (running() >= limits_.max_sequences) return nullptr;
  const auto last = std::next(
      waiting_.begin(), static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kWaitersLookedAt)));
  const auto entry = std::find_if(waiting_.begin(), last, [this](const auto& waiter) {
    return !prefix_is_coming(*waiter.second);
  });
  if (entry == last) return nullptr;
  Sequence& oldest = *entry->second;
  while (!admit(oldest)) {
    Sequence* idle = victim(oldest, true);
    if (idle == nullptr) {
      blocks_short_ = true;
      return nullptr;
    }
    give_up_blocks(*idle);
  }
  return &oldest;
}

// True while a prompt in this step or the last one is computing blocks that the waiter can share:
// it waits for them instead of computing them beside it. Requests that arrive together with one
// system prompt so compute it once.
bool Scheduler::prefix_is_coming(const Sequence& waiter) const {
  constexpr int kWorthWaiting = 2 * core::kBlockTokens;
  if (!cache_.shares_prefixes() || waiter.wants_prompt_rows || !waiter.table.blocks.empty()) {
    return false;
  }
  for (const auto& [_, runner] : running_) {
    const bool moves = runner->planned > 0 || runner->last_step + 1 >= step_ || runner->restoring;
    if (runner->pending() <= 1 || !moves || runner->table.salt != waiter.table.salt) continue;
    const auto [end, _other] = std::mismatch(waiter.tokens.begin(), waiter.tokens.end() - 1,
                                             runner->tokens.begin(), runner->tokens.end());
    const auto common = static_cast<int>(end - waiter.tokens.begin());
    const int shareable = common / core::kBlockTokens * core::kBlockTokens;
    if (shareable - runner->computed >= kWorthWaiting) return true;
  }
  return false;
}

// One failure is enough for a step: looking a prompt up costs time, and the next one is longer.
bool Scheduler::try_admit(Sequence& sequence) {
  if (blocks_short_ || running() >= limits_.max_sequences) return false;
  if (prefix_is_coming(sequence)) return false;
  if (admit(sequence)) return true;
  blocks_short_ = true;
  give_up_blocks(sequence);
  return false;
}

// Takes all blocks of the tokens known so far at once: a prefill never stops half way for want of
// blocks, only a decoding sequence can. On failure it keeps what the cache already had of it.
bool Scheduler::admit(Sequence& sequence) {
  const int skippable = sequence.wants_prompt_rows ? sequence.prompt_rows_seen / core::kBlockTokens
                                                   : std::numeric_limits<int>::max();
  if (sequence.table.blocks.empty()) {
    sequence.computed = cache_.reuse(sequence.table, sequence.tokens, skippable);
  }
  if (!has_room(sequence)) return false;
  if (sequence.computed == sequence.table.findable * core::kBlockTokens) {
    cache_.count_reuse(sequence.table);
  }
  cache_.grow(sequence.table, static_cast<int>(sequence.tokens.size()));
  if (!sequence.started) {
    sequence.reused = sequence.computed;
    order_.started(sequence.rank, sequence.priority);
  }
  sequence.started = true;
  dequeue(sequence);
  sequence.admitted = true;
  running_.emplace(key(sequence), &sequence);
  plan_restore(sequence, skippable);
  return true;
}

// Others run while what the SSD has of the prefix is read.
void Scheduler::plan_restore(Sequence& sequence, int max_blocks) {
  // Positions beyond the findable ones that are already computed are not read again.
  if (sequence.restoring) return;
  if (sequence.computed != sequence.table.findable * core::kBlockTokens) return;
  auto job = cache_.plan_restore(sequence.table, sequence.tokens, max_blocks);
  if (!job) return;
  sequence.restoring = job->id;
  readers_.emplace(job->id, sequence.id);
  restores_.push_back(std::move(*job));
}

void Scheduler::restored(const cache::RestoreJob& job, int good) {
  const auto reader = readers_.extract(job.id);
  Sequence* sequence = reader.empty() ? nullptr : get(reader.mapped());
  if (sequence != nullptr && sequence->restoring == job.id) {
    sequence->restoring = cache::kNoTransfer;
    sequence->computed = (sequence->table.findable + good) * core::kBlockTokens;
    if (sequence->last_step == 0) sequence->reused = sequence->computed;
    cache_.publish(sequence->table, sequence->tokens, sequence->computed);
  }
  cache_.restored(job, good);
}

// Beside its own blocks it leaves one for about each running sequence, which may need one next.
// What the SSD should have is not thrown away for it while it can be written.
bool Scheduler::has_room(const Sequence& sequence) {
  const int missing = core::blocks_for(static_cast<int>(sequence.tokens.size())) -
                      static_cast<int>(sequence.table.blocks.size());
  const int margin = std::min(running(), cache_.pool().total() / 16);
  return missing + margin <= cache_.available() && !cache_.wait_for_room(missing);
}

void Scheduler::add_slice(Sequence& sequence, StepPlan& plan) {
  core::Batch& batch = plan.batch;
  core::SequenceSlice slice;
  slice.row_begin = batch.rows();
  slice.row_count = std::exchange(sequence.planned, 0);
  slice.position = sequence.computed;
  slice.block_begin = static_cast<int>(batch.blocks.size());
  slice.block_count = core::blocks_for(slice.position + slice.row_count);
  const auto first = sequence.tokens.begin() + slice.position;
  batch.tokens.insert(batch.tokens.end(), first, first + slice.row_count);
  for (int i = 0; i < slice.block_count; ++i) {
    const cache::BlockId block = sequence.table.blocks[static_cast<std::size_t>(i)];
    batch.blocks.push_back(block_refs_[static_cast<std::size_t>(block)]);
  }
  batch.sequences.push_back(slice);
  plan.shape.add_rows(slice.position, slice.row_count);
  add_sampled_rows(sequence, slice, plan);
  sequence.last_step = step_;
}

void Scheduler::add_sampled_rows(const Sequence& sequence, const core::SequenceSlice& slice,
                                 StepPlan& plan) const {
  std::vector<std::int32_t>& sampled = plan.batch.sampled_rows;
  PlannedSlice planned{sequence.id, slice.row_count, static_cast<int>(sampled.size()), 0, false};
  const int end = slice.position + slice.row_count;
  planned.last_token = end == static_cast<int>(sequence.tokens.size());
  for (int position = slice.position; position < end; ++position) {
    const bool prompt_row = sequence.wants_prompt_rows && position + 1 < sequence.prompt_tokens &&
                            position >= sequence.prompt_rows_seen;
    if (prompt_row || (planned.last_token && position + 1 == end)) {
      sampled.push_back(slice.row_begin + position - slice.position);
    }
  }
  planned.sample_count = static_cast<int>(sampled.size()) - planned.first_sample;
  plan.slices.push_back(planned);
}

// --- After the step ---

void Scheduler::commit(const PlannedSlice& slice) {
  Sequence* sequence = get(slice.id);
  if (sequence == nullptr) return;
  sequence->computed += slice.rows;
  sequence->prompt_rows_seen = std::max(sequence->prompt_rows_seen,
                                        std::min(sequence->computed, sequence->prompt_tokens - 1));
  cache_.publish(sequence->table, sequence->tokens, sequence->computed);
  if (!sequence->prompt_done && sequence->computed >= sequence->prompt_tokens) {
    sequence->prompt_done = true;
    release_followers(*sequence);
  }
}

// The other choices share the prompt's whole blocks; the rest of it, at most a block with the final
// token, each computes for itself, so that no block has two writers.
void Scheduler::release_followers(Sequence& leader) {
  const int shared = (leader.prompt_tokens - 1) / core::kBlockTokens;
  for (const SequenceId id : std::exchange(leader.followers, {})) {
    Sequence* follower = get(id);
    if (follower == nullptr) continue;
    follower->gated = false;
    cache_.fork(leader.table, follower->table, shared);
    follower->computed = shared * core::kBlockTokens;
    enqueue(*follower);
  }
}

void Scheduler::append(SequenceId id, TokenId token) {
  if (Sequence* sequence = get(id)) sequence->tokens.push_back(token);
}

}  // namespace bodega::schedule
