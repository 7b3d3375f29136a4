#pragma once

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "schedule/scheduler.h"

namespace bodega::schedule {

// About the default model on two cores: a row costs 1.7 ms, reading the weights 2 ms.
inline cost::ModelWork test_work() {
  return {.weight_bytes = 60'000'000,
          .flops_per_row = 200'000'000,
          .head_bytes = 18'000'000,
          .flops_per_sampled_row = 56'000'000,
          .kv_bytes_per_token = 23'040,
          .flops_per_kv_token = 69'120,
          .block_bytes = 368'640};
}

// A scheduler with a make-believe device: each (block, slot) remembers which prefix it holds, and a
// step fails the test unless every row finds its whole prefix where its block table says.
class Harness {
 public:
  Harness(const Limits& limits, int blocks, bool prefix_cache = true,
          const cost::CostModel* prices = nullptr, std::int64_t disk_bytes = 0)
      : cache({.blocks = blocks,
               .prefix_cache = prefix_cache,
               .model_salt = {},
               .ladder = {.disk_bytes = disk_bytes},
               .blocks_per_file = 3},
              &cache::PrefixIndex::chain, prices),
        scheduler(limits, cache, refs(blocks), prices),
        memory_(static_cast<std::size_t>(blocks * core::kBlockTokens)) {}

  static std::vector<TokenId> counted(int count, TokenId first = 0) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }

  SequenceId add(std::vector<TokenId> prompt, SequenceSpec spec = {}) {
    spec.id = ++last_id_;
    spec.prompt = std::move(prompt);
    salts_[spec.id] = spec.cache_salt;
    scheduler.add(std::move(spec));
    return last_id_;
  }

  StepPlan step() {
    StepPlan plan = scheduler.schedule();
    execute(plan);
    for (const PlannedSlice& slice : plan.slices) scheduler.commit(slice);
    return plan;
  }

  void execute(const StepPlan& plan) {
    const core::Batch& batch = plan.batch;
    ASSERT_EQ(batch.sequences.size(), plan.slices.size());
    int row = 0;
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      const core::SequenceSlice& slice = batch.sequences[i];
      ASSERT_EQ(slice.row_begin, row);
      ASSERT_EQ(slice.row_count, plan.slices[i].rows);
      ASSERT_GE(slice.row_count, 1);
      ASSERT_EQ(slice.block_count, core::blocks_for(slice.position + slice.row_count));
      row += slice.row_count;
      execute_slice(plan.slices[i].id, slice, batch);
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(row, batch.rows());
  }

  int rows_of(const StepPlan& plan, SequenceId id) const {
    for (const PlannedSlice& slice : plan.slices) {
      if (slice.id == id) return slice.rows;
    }
    return 0;
  }

  // What a block of the pool holds, one hash a slot.
  std::uint64_t* block(cache::BlockId id) {
    const core::BlockRef ref{id % 2, id / 2};
    return &memory_[static_cast<std::size_t>((ref.offset * 2 + ref.slab) * core::kBlockTokens)];
  }

  cache::KvCache cache;
  Scheduler scheduler;

 private:
  static std::vector<core::BlockRef> refs(int blocks) {
    std::vector<core::BlockRef> refs;
    for (int i = 0; i < blocks; ++i) refs.push_back({i % 2, i / 2});
    return refs;
  }
  static std::uint64_t mix(std::uint64_t prefix, std::uint64_t value) {
    prefix = (prefix ^ value) * 0x9E3779B97F4A7C15ULL;
    return prefix ^ (prefix >> 29);
  }

  std::uint64_t& slot(const core::Batch& batch, const core::SequenceSlice& slice, int position) {
    const auto entry = static_cast<std::size_t>(slice.block_begin + position / core::kBlockTokens);
    const core::BlockRef ref = batch.blocks[entry];
    const int block = ref.offset * 2 + ref.slab;
    return memory_[static_cast<std::size_t>(block * core::kBlockTokens +
                                            position % core::kBlockTokens)];
  }

  void execute_slice(SequenceId id, const core::SequenceSlice& slice, const core::Batch& batch) {
    const Sequence& sequence = *scheduler.find(id);
    std::uint64_t prefix = std::hash<std::string>{}(salts_[id]);
    for (int p = 0; p < slice.position + slice.row_count; ++p) {
      const TokenId token = sequence.tokens[static_cast<std::size_t>(p)];
      prefix = mix(prefix, static_cast<std::uint64_t>(token) + 1);
      std::uint64_t& kv = slot(batch, slice, p);
      if (p < slice.position) {
        ASSERT_EQ(kv, prefix) << "sequence " << id << " does not find position " << p;
      } else {
        const auto row = static_cast<std::size_t>(slice.row_begin + p - slice.position);
        ASSERT_EQ(batch.tokens[row], token);
        kv = prefix;
      }
    }
  }

  std::vector<std::uint64_t> memory_;  // [blocks, kBlockTokens]
  std::map<SequenceId, std::string> salts_;
  SequenceId last_id_ = 0;
};

}  // namespace bodega::schedule
