#include <stdexcept>
#include <string>

#include "schedule/scheduler.h"

namespace bodega::schedule {
namespace {

void require(bool holds, const char* what, const Sequence& sequence) {
  if (!holds) {
    throw std::logic_error("scheduler: sequence " + std::to_string(sequence.id) + " " + what);
  }
}

}  // namespace

void Scheduler::check() const {
  std::vector<const cache::BlockTable*> tables;
  for (const auto& [_, sequence] : sequences_) {
    check_sequence(*sequence);
    tables.push_back(&sequence->table);
  }
  cache_.check(tables);
  std::size_t queued = 0;
  for (const auto& [_, sequence] : sequences_) queued += !sequence->gated && !sequence->paused;
  if (queued != running_.size() + waiting_.size() || running() > limits_.max_sequences) {
    throw std::logic_error("scheduler: a sequence is in no queue, or too many run");
  }
}

void Scheduler::check_sequence(const Sequence& sequence) const {
  const cache::BlockTable& table = sequence.table;
  const int tokens = static_cast<int>(sequence.tokens.size());
  require(sequence.computed <= tokens, "has computed more than it has", sequence);
  require(sequence.computed <= table.capacity(), "lost blocks that it computed", sequence);
  require(table.findable * core::kBlockTokens <= sequence.computed,
          "published a block before it was computed", sequence);
  require(sequence.planned == 0, "was planned for a step that never came", sequence);
  require(sequence.admitted == running_.contains(key(sequence)), "is in the wrong queue", sequence);
  const bool waits = !sequence.admitted && !sequence.gated && !sequence.paused;
  require(waits == waiting_.contains(key(sequence)), "is in the wrong queue", sequence);
  require(!sequence.gated || table.blocks.empty(), "holds blocks before its turn", sequence);
  // Everything from the next position on will be written: nobody else may hold or find it, but a
  // transfer that fills it.
  const int holders = sequence.restoring == cache::kNoTransfer ? 1 : 2;
  for (std::size_t i = static_cast<std::size_t>(sequence.computed / core::kBlockTokens);
       i < table.blocks.size(); ++i) {
    require(cache_.pool().references(table.blocks[i]) <= holders, "would write a shared block",
            sequence);
    require(!cache_.pool().findable(table.blocks[i]), "would write a findable block", sequence);
  }
}

}  // namespace bodega::schedule
