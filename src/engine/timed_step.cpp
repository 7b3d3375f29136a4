#include "engine/timed_step.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace bodega::engine {

core::Batch one_sequence(const Runner& runner, int position, int rows) {
  core::Batch batch;
  for (int i = 0; i < rows; ++i) {
    batch.tokens.push_back((position + i) * 37 % runner.vocab_size());
  }
  const int blocks = core::blocks_for(position + rows);
  for (int b = 0; b < blocks; ++b) batch.blocks.push_back(runner.block_ref(b));
  batch.sequences = {{0, rows, position, 0, blocks}};
  batch.sampled_rows = {rows - 1};
  return batch;
}

double median_step(Runner& runner, const core::Batch& batch, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    runner.launch(batch);
    runner.logits();
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace bodega::engine
