#include "cli/simulate/sim_machine.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bodega::cli {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{2} << 20;
constexpr std::int64_t kHeaderBytes = 4096;
constexpr int kMostBlocksAFile = 32;
constexpr int kWritesAtOnce = 8;
constexpr int kUrgentShare = 32;

cache::KvCache::Config cache_config(const SimConfig& config) {
  cache::KvCache::Config cache;
  cache.blocks = config.blocks;
  cache.ladder = {config.policy, config.disk_bytes};
  cache.blocks_per_file = static_cast<int>(
      std::clamp<std::int64_t>(kFileBytes / config.work.block_bytes, 1, kMostBlocksAFile));
  return cache;
}

schedule::Limits limits_of(const SimConfig& config) {
  schedule::Limits limits = config.limits;
  if (config.fixed_chunk > 0) limits.max_step_tokens = config.fixed_chunk;
  return limits;
}

}  // namespace

void SimStats::merge(const SimStats& other) {
  finished += other.finished;
  refused += other.refused;
  preempted += other.preempted;
  steps += other.steps;
  prompt_tokens += other.prompt_tokens;
  new_tokens += other.new_tokens;
  hot_tokens += other.hot_tokens;
  restored_tokens += other.restored_tokens;
  computed_tokens += other.computed_tokens;
  generated_tokens += other.generated_tokens;
  disk_bytes += other.disk_bytes;
  disk_written += other.disk_written;
  busy_s += other.busy_s;
  end_s = std::max(end_s, other.end_s);
  ttft.merge(other.ttft);
  gap.merge(other.gap);
}

SimMachine::SimMachine(const SimConfig& config)
    : config_(config),
      prices_(config.machine, config.work),
      cache_(cache_config(config), &cache::PrefixIndex::chain, &prices_),
      scheduler_(limits_of(config), cache_,
                 std::vector<core::BlockRef>(static_cast<std::size_t>(config.blocks)),
                 config.fixed_chunk > 0 ? nullptr : &prices_) {}

void SimMachine::submit(const SimRequest& request) {
  const int tokens = request.prompt_tokens() + request.output_tokens;
  const bool fits = core::blocks_for(tokens) + 1 < config_.blocks;
  if (!fits || scheduler_.waiting() >= config_.queue_size) {
    ++stats_.refused;
    return;
  }
  now_s_ = std::max(now_s_, request.arrival_s);
  schedule::SequenceSpec spec;
  spec.id = ++last_id_;
  spec.prompt = sim_tokens(request.prompt);
  spec.priority = request.priority;
  stats_.prompt_tokens += spec.prompt.size();
  scheduler_.add(std::move(spec));
  live_.emplace(last_id_, Live{request.arrival_s, 0, request.prompt.back().content,
                               request.prompt.back().tokens, 0, request.output_tokens});
}

void SimMachine::advance(double until_s) {
  while (now_s_ < until_s) {
    end_transfers();
    if (live_.empty() && transfers_.empty()) break;
    schedule::StepPlan plan = scheduler_.schedule();
    begin_transfers(plan);
    if (plan.empty()) {
      const double next = next_transfer_s();
      if (next >= until_s) break;
      now_s_ = std::max(now_s_, next);
      continue;
    }
    const double seconds = prices_.step_seconds(plan.shape);
    now_s_ += seconds;
    stats_.busy_s += seconds;
    ++stats_.steps;
    finish_step(plan);
  }
  if (until_s < std::numeric_limits<double>::infinity()) now_s_ = std::max(now_s_, until_s);
}

void SimMachine::finish_step(const schedule::StepPlan& plan) {
  for (const schedule::PlannedSlice& slice : plan.slices) {
    const schedule::Sequence& sequence = *scheduler_.find(slice.id);
    const bool decodes = slice.rows == 1 && sequence.prompt_done;
    if (!decodes) stats_.computed_tokens += static_cast<std::uint64_t>(slice.rows);
    scheduler_.commit(slice);
    if (slice.last_token) deliver(slice);
  }
}

void SimMachine::deliver(const schedule::PlannedSlice& slice) {
  Live& live = live_.at(slice.id);
  (live.made == 0 ? stats_.ttft : stats_.gap)
      .add(now_s_ - (live.made == 0 ? live.arrival_s : live.last_token_s));
  live.last_token_s = now_s_;
  ++stats_.generated_tokens;
  if (++live.made < live.wanted) {
    scheduler_.append(slice.id, sim_token(live.content, live.offset + live.made - 1));
    return;
  }
  scheduler_.remove(slice.id);
  live_.erase(slice.id);
  ++stats_.finished;
  stats_.end_s = now_s_;
}

// One thing at a time goes over the SSD, as the engine's I/O thread does it.
void SimMachine::begin_transfers(schedule::StepPlan& plan) {
  const auto occupy = [this](double seconds) {
    disk_free_s_ = std::max(disk_free_s_, now_s_) + seconds;
    return disk_free_s_;
  };
  for (cache::RestoreJob& job : plan.restores) {
    const auto bytes = static_cast<std::int64_t>(job.parts.size()) * config_.work.block_bytes;
    const double end_s = occupy(prices_.reload_seconds(bytes));
    transfers_.push_back({end_s, std::move(job)});
  }
  while (writing_ < kWritesAtOnce && may_write(plan)) {
    auto job = cache_.plan_spill(false);
    if (!job) return;
    ++writing_;
    const auto bytes = static_cast<std::int64_t>(job->blocks.size()) * config_.work.block_bytes;
    const double end_s = occupy(prices_.spill_seconds(bytes));
    transfers_.push_back({end_s, std::move(*job)});
  }
}

bool SimMachine::may_write(const schedule::StepPlan& plan) const {
  const int ready = cache_.pool().free() + cache_.ladder().clean();
  return plan.empty() || cache_.room_wanted() || ready < cache_.pool().total() / kUrgentShare ||
         plan.shape.rows > prices_.ridge_rows();
}

void SimMachine::end_transfers() {
  for (std::size_t i = 0; i < transfers_.size();) {
    if (transfers_[i].end_s > now_s_) {
      ++i;
      continue;
    }
    const Transfer ended = std::move(transfers_[i]);
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    if (const auto* read = std::get_if<cache::RestoreJob>(&ended.job)) {
      scheduler_.restored(*read, static_cast<int>(read->parts.size()));
    } else {
      const auto& spill = std::get<cache::SpillJob>(ended.job);
      const std::int64_t bytes =
          kHeaderBytes + static_cast<std::int64_t>(spill.blocks.size()) * config_.work.block_bytes;
      cache_.spilled(spill, true, bytes);
      stats_.disk_written += bytes;
      --writing_;
    }
  }
  while (cache_.plan_delete()) continue;
}

double SimMachine::next_transfer_s() const {
  double next = std::numeric_limits<double>::infinity();
  for (const Transfer& transfer : transfers_) next = std::min(next, transfer.end_s);
  return next;
}

SimStats SimMachine::stats() const {
  SimStats stats = stats_;
  stats.preempted = scheduler_.preempted();
  stats.hot_tokens = cache_.counters().hot_blocks * core::kBlockTokens;
  stats.restored_tokens = cache_.counters().restored_blocks * core::kBlockTokens;
  stats.disk_bytes = cache_.ladder().disk().bytes();
  return stats;
}

}  // namespace bodega::cli
