#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/request.h"
#include "engine/runner.h"

namespace bodega::engine {

// The make-believe model: logits are a hash of the whole prefix of tokens.
inline constexpr int kEchoVocab = 64;
std::uint64_t extend_prefix(std::uint64_t prefix, core::TokenId token, int position);
void echo_logits(std::uint64_t prefix, float* out);  // [kEchoVocab]

// The answer of one choice, computed straight from the definition: no cache, no batch, no steps.
std::vector<core::TokenId> model_answer(const core::Request& request, int choice,
                                        const std::vector<core::TokenId>& end_tokens);

// What tests want to know of a runner after its engine took it.
struct EchoObserver {
  std::atomic<int> rows{0};
  std::atomic<int> steps{0};
  std::atomic<int> max_rows{0};
  std::atomic<int> wrong_reads{0};      // positions not found where the block table says
  std::atomic<int> fail_logits_at{-1};  // step whose logits() throws
  std::atomic<int> nan_rows_at{-1};     // step whose first sampled row is NaN
};

// A runner whose KV cache is real: each (block, slot) holds the token and position written there,
// and a row's logits come from reading its whole prefix back through its block table. A wrong
// table, a stale or shared-and-written block, or a wrong position gives another answer and counts
// as an error. The device is another thread, so launch() returns at once.
class KvEchoRunner : public Runner {
 public:
  KvEchoRunner(int blocks, std::shared_ptr<EchoObserver> observer);
  ~KvEchoRunner() override;

  void launch(const core::Batch& batch) override;
  std::span<const float> logits() override;
  int vocab_size() const override { return kEchoVocab; }
  int block_count() const override { return blocks_; }
  core::BlockRef block_ref(int block) const override { return {block % kSlabs, block / kSlabs}; }
  std::span<std::byte> block_memory(int block) override;

 private:
  static constexpr int kSlabs = 3;
  struct Slot {
    core::TokenId token = -1;
    int position = -1;
  };

  Slot& slot(const core::Batch& batch, const core::SequenceSlice& slice, int position);
  void execute(const core::Batch& batch);
  void execute_slice(const core::Batch& batch, const core::SequenceSlice& slice);

  int blocks_;
  std::shared_ptr<EchoObserver> observer_;
  std::vector<std::vector<Slot>> slabs_;  // [slab][offset * kBlockTokens + slot]
  std::vector<std::uint64_t> prefixes_;   // [rows]
  std::vector<float> logits_;             // [sampled rows, vocab]
  std::future<void> device_;
};

}  // namespace bodega::engine
