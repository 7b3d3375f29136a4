#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/kv_cache.h"
#include "core/batch.h"
#include "schedule/fair_order.h"
#include "schedule/prefill_budget.h"
#include "schedule/sequence.h"

namespace bodega::schedule {

struct Limits {
  int max_step_tokens = 512;  // ceiling of rows in a step, at least kMinStepTokens
  int max_sequences = 256;    // admitted at once
  int max_prompt_rows = 32;   // rows a step of one sequence that wants all prompt logits
  int max_prefills = 8;       // prompts that share a step
  GapTarget gap{};
};
inline constexpr int kMinStepTokens = 8;

// One sequence's part of a step.
struct PlannedSlice {
  SequenceId id = kNoSequence;
  int rows = 0;
  int first_sample = 0;  // index of its first row in Batch::sampled_rows
  int sample_count = 0;  // its last row is the last of them when it reaches the final token
  bool last_token = false;
};

struct StepPlan {
  core::Batch batch;
  std::vector<PlannedSlice> slices;  // as batch.sequences
  cost::StepShape shape;             // what the step does, for its price
  // Prefixes to read from the SSD meanwhile; restored() is called for each when it has ended.
  std::vector<cache::RestoreJob> restores;

  bool empty() const { return slices.empty(); }
};

// The step policy: (sequences, blocks, prices) -> Batch. Pure: no clock, thread or model. Decode
// rows first, then as much prefill as keeps the step's predicted time within the gap target: half
// of it for the oldest prompt, the rest for the shortest, so neither waits on the other for ever.
// When a running sequence finds no block, one that came later gives its own back, whichever is the
// cheapest to compute again.
class Scheduler {
 public:
  // `block_refs`: where each block of the cache lives. Without prices only the ceilings hold.
  Scheduler(const Limits& limits, cache::KvCache& cache, std::vector<core::BlockRef> block_refs,
            const cost::CostModel* prices = nullptr);

  void add(SequenceSpec spec);
  void remove(SequenceId id);  // finished or cancelled; its blocks are let go at once
  void pause(SequenceId id, bool paused);

  // Picks the next step. Whoever calls this runs it, then calls commit() for each of its slices
  // whose sequence still lives (or remove() when the step failed), then append().
  StepPlan schedule();
  // The slice's rows really are in the cache now.
  void commit(const PlannedSlice& slice);
  void append(SequenceId id, TokenId token);
  // The first `good` blocks of the transfer are there; the rest will be computed.
  void restored(const cache::RestoreJob& job, int good);

  // nullptr: unknown, finished or cancelled. Valid until the next add() or remove().
  const Sequence* find(SequenceId id) const;

  int running() const { return static_cast<int>(running_.size()); }  // admitted
  int waiting() const { return static_cast<int>(waiting_.size()); }  // not admitted, not gated
  std::uint64_t preempted() const { return preempted_; }
  // Sequences that could be admitted now; 0 also when blocks, not places, are what is missing.
  int spare_sequences() const;

  // Throws std::logic_error when an invariant does not hold.
  void check() const;

 private:
  using Key = std::pair<std::uint64_t, SequenceId>;  // (rank, id): the order of arrival
  using Queue = std::map<Key, Sequence*>;
  static Key key(const Sequence& sequence) { return {sequence.rank, sequence.id}; }
  bool prefill_wanted() const;
  std::vector<Sequence*> pick_decodes(int budget) const;
  int plan_decodes(int budget);
  void plan_prefills(int row_ceiling, int decode_rows);
  void plan_rows(Sequence& sequence, PrefillBudget& budget, bool half);
  Sequence* admit_oldest();
  bool prefix_is_coming(const Sequence& waiter) const;
  bool try_admit(Sequence& sequence);
  bool admit(Sequence& sequence);
  void plan_restore(Sequence& sequence, int max_blocks);
  bool has_room(const Sequence& sequence);
  bool secure_next_block(Sequence& sequence);
  Sequence* victim(const Sequence& keeper, bool idle_only) const;
  double price_of(const Sequence& sequence) const;
  void give_up_blocks(Sequence& sequence);
  void release_followers(Sequence& leader);
  void enqueue(Sequence& sequence);
  void dequeue(Sequence& sequence);
  void add_slice(Sequence& sequence, StepPlan& plan);
  void add_sampled_rows(const Sequence& sequence, const core::SequenceSlice& slice,
                        StepPlan& plan) const;
  Sequence* get(SequenceId id);
  void check_sequence(const Sequence& sequence) const;

  Limits limits_;
  cache::KvCache& cache_;
  std::vector<core::BlockRef> block_refs_;
  const cost::CostModel* prices_;
  FairOrder order_;
  cost::StepShape shape_;  // of the step that is being put together
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::unordered_map<cache::TransferId, SequenceId> readers_;  // who waits for which transfer
  std::vector<cache::RestoreJob> restores_;                    // planned by this step
  Queue running_;
  Queue waiting_;
  std::uint64_t step_ = 0;
  std::uint64_t preempted_ = 0;
  bool blocks_short_ = false;  // the oldest waiter did not fit at the last step
};

}  // namespace bodega::schedule
