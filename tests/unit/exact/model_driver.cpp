#include "model_driver.h"

#include "ops/cpu/kernels.h"

namespace bodega::test {
namespace {

constexpr int kBlocks = ModelDriver::kMaxTokens / ops::kBlockTokens;

}  // namespace

ModelDriver::ModelDriver(const std::string& path, Options options)
    : checkpoint_(model::Checkpoint::open(path)) {
  const ScopedIsa isa(options.isa);
  ops::Plan plan = model::record_plan(*checkpoint_, kMaxTokens);
  ops::ExecutorOptions executor;
  executor.threads = options.threads;
  executor.reference = options.reference;
  executor.fast = options.fast;
  executor.kv_bytes = plan.kv_groups.front().block_bytes() * kBlocks * kMaxSequences;
  runner_ = std::make_unique<engine::ModelRunner>(
      std::move(plan), on_gpu() ? mlx::core::Device::gpu : mlx::core::Device::cpu, executor);
}

std::vector<std::vector<float>> ModelDriver::step(const std::vector<Piece>& pieces) {
  core::Batch batch;
  for (const Piece& piece : pieces) {
    core::SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = static_cast<int>(piece.tokens.size());
    slice.position = piece.position;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count =
        (piece.position + slice.row_count + ops::kBlockTokens - 1) / ops::kBlockTokens;
    for (int b = 0; b < slice.block_count; ++b) {
      // Blocks of the sequences interleave, so that a wrong table reads a neighbour's.
      batch.blocks.push_back(runner_->block_ref(b * kMaxSequences + piece.sequence));
    }
    batch.tokens.insert(batch.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    batch.sequences.push_back(slice);
  }
  for (int row = 0; row < batch.rows(); ++row) batch.sampled_rows.push_back(row);
  runner_->launch(batch);
  const std::span<const float> logits = runner_->logits();
  const std::size_t vocab = static_cast<std::size_t>(runner_->vocab_size());
  std::vector<std::vector<float>> rows;
  for (std::size_t at = 0; at < logits.size(); at += vocab) {
    rows.emplace_back(logits.begin() + at, logits.begin() + at + vocab);
  }
  return rows;
}

std::vector<std::vector<float>> ModelDriver::whole(const std::vector<int>& tokens, int chunk,
                                                   int sequence) {
  std::vector<std::vector<float>> rows;
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const std::size_t end = std::min(tokens.size(), at + chunk);
    const Piece piece{sequence, {tokens.begin() + at, tokens.begin() + end}, static_cast<int>(at)};
    for (auto& row : step({piece})) rows.push_back(std::move(row));
  }
  return rows;
}

bool on_gpu() {
  const char* device = std::getenv("BODEGA_TEST_DEVICE");
  return device != nullptr && std::string(device) == "gpu";
}

std::vector<const char*> available_isas() {
  if (on_gpu()) return {"gpu"};  // of the CPU's instruction sets none matters there
  std::vector<const char*> isas;
  for (const char* isa : ops::cpu::kernel_names()) {
    if (ops::cpu::find_kernels(isa) != nullptr) isas.push_back(isa);
  }
  return isas;
}

std::string golden_path(const std::string& name) {
  return std::string(BODEGA_SOURCE_DIR) + "/tests/golden/logits/" + name;
}

}  // namespace bodega::test
