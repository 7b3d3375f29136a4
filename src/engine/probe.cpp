#include "engine/probe.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "engine/calibrate.h"
#include "engine/model_runner.h"
#include "engine/timed_step.h"
#include "model/checkpoint.h"
#include "model/llama.h"

namespace bodega::engine {
namespace {

constexpr int kContext = 1024;
constexpr int kManyRows = 256;
constexpr int kRepeats = 7;
constexpr int kMixedSteps = 60;
constexpr int kFirstStreamBlock = 32;
constexpr std::int64_t kKvBytes = std::int64_t{64} << 20;
constexpr std::size_t kBufferBytes = std::size_t{256} << 20;

// Steps as a server has them, some decodes beside a chunk: how well does the calibrated model know
// what they take?
cost::CostReport check_prices(ModelRunner& runner) {
  cost::CostModel prices = calibrate(runner, work_of(runner.executor().plan()));
  for (int i = 0; i < kMixedSteps; ++i) {
    core::Batch batch = one_sequence(runner, 0, 1 + i * 13 % 48);
    for (int stream = 0; stream < i % 8; ++stream) {
      batch.blocks.push_back(runner.block_ref(kFirstStreamBlock + stream));
      batch.sequences.push_back(
          {batch.rows(), 1, i % core::kBlockTokens, static_cast<int>(batch.blocks.size()) - 1, 1});
      batch.sampled_rows.push_back(batch.rows());
      batch.tokens.push_back(stream);
    }
    cost::StepShape shape;
    for (const core::SequenceSlice& s : batch.sequences) shape.add_rows(s.position, s.row_count);
    shape.sampled_rows = static_cast<int>(batch.sampled_rows.size());
    const Stopwatch watch;
    runner.launch(batch);
    runner.logits();
    prices.observe_step(shape, watch.seconds());
  }
  return prices.report();
}

}  // namespace

Probe probe_model(const std::string& path, int threads) {
  const std::unique_ptr<model::Checkpoint> checkpoint = model::Checkpoint::open(path);
  ops::ExecutorOptions options;
  options.kv_bytes = kKvBytes;
  options.threads = threads;
  ModelRunner runner(
      model::record_llama(*checkpoint, std::min(kContext, checkpoint->config().context_length)),
      mlx::core::default_device(), options);
  Probe probe;
  probe.kernels = runner.executor().kernels();
  probe.exact = runner.executor().exact();
  probe.work = runner.executor().plan().work();
  probe.checks = runner.executor().check_records(one_sequence(runner, 0, 37));
  probe.many_rows = kManyRows;
  probe.many_rows_s = median_step(runner, one_sequence(runner, 0, kManyRows), kRepeats);
  probe.one_row_s = median_step(runner, one_sequence(runner, kManyRows, 1), kRepeats);
  probe.prices = check_prices(runner);
  return probe;
}

double measure_read_bandwidth(int threads) {
  std::vector<std::uint64_t> buffer(kBufferBytes / sizeof(std::uint64_t), 1);
  constexpr int kChunks = 256;
  struct Context {
    const std::uint64_t* data;
    std::size_t chunk;
    std::vector<std::uint64_t> sums;
  } context{buffer.data(), buffer.size() / kChunks, std::vector<std::uint64_t>(kChunks)};
  const ThreadPool::Phase phase{kChunks,
                                [](const void* given, int chunk, int /*worker*/) {
                                  auto& c = *static_cast<Context*>(const_cast<void*>(given));
                                  const std::uint64_t* data = c.data + chunk * c.chunk;
                                  std::uint64_t lanes[8] = {};
                                  for (std::size_t i = 0; i + 8 <= c.chunk; i += 8) {
                                    for (int lane = 0; lane < 8; ++lane)
                                      lanes[lane] += data[i + lane];
                                  }
                                  for (const std::uint64_t lane : lanes) c.sums[chunk] += lane;
                                },
                                &context};
  ThreadPool pool(threads);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    pool.run({&phase, 1});
    best = std::max(best, static_cast<double>(kBufferBytes) / watch.seconds());
  }
  return best / 1e9;
}

}  // namespace bodega::engine
