#include "kv_echo_runner.h"

#include <algorithm>
#include <limits>

#include "sample/sampler.h"

namespace bodega::engine {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t extend_prefix(std::uint64_t prefix, core::TokenId token, int position) {
  return mix(prefix * 3 + static_cast<std::uint64_t>(token) * 1009 +
             static_cast<std::uint64_t>(position) + 1);
}

void echo_logits(std::uint64_t prefix, float* out) {
  for (int i = 0; i < kEchoVocab; ++i) {
    const std::uint64_t bits = mix(prefix + 0x9E3779B97F4A7C15ULL * static_cast<unsigned>(i + 1));
    out[i] = static_cast<float>(bits >> 40) * 0x1.0p-22F - 2.0F;  // [-2, 2)
  }
}

std::vector<core::TokenId> model_answer(const core::Request& request, int choice,
                                        const std::vector<core::TokenId>& end_tokens) {
  std::vector<core::TokenId> ends = request.stop.stop_token_ids;
  if (!request.stop.ignore_eos) ends.insert(ends.end(), end_tokens.begin(), end_tokens.end());
  std::uint64_t prefix = 0;
  int position = 0;
  for (const core::TokenId token : request.prompt)
    prefix = extend_prefix(prefix, token, position++);
  sample::History history(request.prompt);
  sample::Sampler sampler;
  std::vector<core::TokenId> answer;
  std::vector<float> logits(kEchoVocab);
  while (static_cast<int>(answer.size()) < request.stop.max_tokens) {
    echo_logits(prefix, logits.data());
    sample::Row row;
    row.logits = logits;
    row.params = &request.sampling;
    row.history = &history;
    if (static_cast<int>(answer.size()) < request.stop.min_tokens) row.banned = ends;
    row.choice = choice;
    row.position = position;
    answer.push_back(sampler.sample(row));
    if (std::find(ends.begin(), ends.end(), answer.back()) != ends.end()) break;
    history.add(answer.back());
    prefix = extend_prefix(prefix, answer.back(), position++);
  }
  return answer;
}

KvEchoRunner::KvEchoRunner(int blocks, std::shared_ptr<EchoObserver> observer)
    : blocks_(blocks), observer_(std::move(observer)) {
  const int per_slab = (blocks + kSlabs - 1) / kSlabs;
  slabs_.assign(kSlabs, std::vector<Slot>(static_cast<std::size_t>(per_slab * core::kBlockTokens)));
}

KvEchoRunner::~KvEchoRunner() {
  if (device_.valid()) device_.wait();
}

std::span<std::byte> KvEchoRunner::block_memory(int block) {
  const core::BlockRef ref = block_ref(block);
  std::vector<Slot>& slab = slabs_.at(static_cast<std::size_t>(ref.slab));
  const auto first = static_cast<std::size_t>(ref.offset * core::kBlockTokens);
  return std::as_writable_bytes(std::span(slab).subspan(first, core::kBlockTokens));
}

void KvEchoRunner::launch(const core::Batch& batch) {
  device_ = std::async(std::launch::async, [this, &batch] { execute(batch); });
}

std::span<const float> KvEchoRunner::logits() {
  device_.get();
  const int step = observer_->steps++;
  if (step == observer_->fail_logits_at) throw std::runtime_error("device lost");
  if (step == observer_->nan_rows_at) {
    std::fill_n(logits_.begin(), kEchoVocab, std::numeric_limits<float>::quiet_NaN());
  }
  return logits_;
}

KvEchoRunner::Slot& KvEchoRunner::slot(const core::Batch& batch, const core::SequenceSlice& slice,
                                       int position) {
  const int entry = position / core::kBlockTokens;
  if (entry >= slice.block_count) throw std::out_of_range("position beyond the block table");
  const core::BlockRef ref = batch.blocks.at(static_cast<std::size_t>(slice.block_begin + entry));
  return slabs_.at(static_cast<std::size_t>(ref.slab))
      .at(static_cast<std::size_t>(ref.offset * core::kBlockTokens +
                                   position % core::kBlockTokens));
}

void KvEchoRunner::execute(const core::Batch& batch) {
  observer_->rows += batch.rows();
  observer_->max_rows = std::max<int>(observer_->max_rows, batch.rows());
  prefixes_.assign(batch.tokens.size(), 0);
  for (const core::SequenceSlice& slice : batch.sequences) execute_slice(batch, slice);
  logits_.resize(batch.sampled_rows.size() * kEchoVocab);
  for (std::size_t i = 0; i < batch.sampled_rows.size(); ++i) {
    echo_logits(prefixes_.at(static_cast<std::size_t>(batch.sampled_rows[i])),
                logits_.data() + i * kEchoVocab);
  }
}

void KvEchoRunner::execute_slice(const core::Batch& batch, const core::SequenceSlice& slice) {
  const int end = slice.position + slice.row_count;
  for (int p = slice.position; p < end; ++p) {
    const auto row = static_cast<std::size_t>(slice.row_begin + p - slice.position);
    slot(batch, slice, p) = {batch.tokens.at(row), p};
  }
  std::uint64_t prefix = 0;
  for (int p = 0; p < end; ++p) {
    const Slot& kv = slot(batch, slice, p);
    if (kv.position != p) ++observer_->wrong_reads;
    prefix = extend_prefix(prefix, kv.token, kv.position);
    if (p < slice.position) continue;
    prefixes_.at(static_cast<std::size_t>(slice.row_begin + p - slice.position)) = prefix;
  }
}

}  // namespace bodega::engine
