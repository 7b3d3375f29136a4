#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_runner.h"
#include "model/checkpoint.h"
#include "model/record.h"

namespace bodega::test {

// A part of one sequence to put into a step.
struct Piece {
  int sequence = 0;  // owns its own range of blocks
  std::vector<int> tokens;
  int position = 0;
};

struct DriverOptions {
  int threads = 2;
  bool reference = false;
  const char* isa = nullptr;
  bool fast = false;  // int8 activations
};

// Runs batches on a model, with kMaxSequences sequences of kMaxTokens tokens each.
class ModelDriver {
 public:
  static constexpr int kMaxSequences = 6;
  static constexpr int kMaxTokens = 1280;

  using Options = DriverOptions;
  explicit ModelDriver(const std::string& path, Options options = {});

  // Logits of every row of every piece, in order: [rows][vocab].
  std::vector<std::vector<float>> step(const std::vector<Piece>& pieces);

  // Logits of all rows of one sequence, its tokens cut into chunks of `chunk`.
  std::vector<std::vector<float>> whole(const std::vector<int>& tokens, int chunk,
                                        int sequence = 0);

  engine::ModelRunner& runner() { return *runner_; }
  const model::ModelConfig& config() const { return checkpoint_->config(); }

 private:
  std::unique_ptr<model::Checkpoint> checkpoint_;
  std::unique_ptr<engine::ModelRunner> runner_;
};

// Sets an environment variable for as long as it lives.
class ScopedIsa {
 public:
  explicit ScopedIsa(const char* isa) {
    if (isa != nullptr) setenv("BODEGA_CPU_ISA", isa, 1);
  }
  ~ScopedIsa() { unsetenv("BODEGA_CPU_ISA"); }
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;
};

std::vector<const char*> available_isas();
// BODEGA_TEST_DEVICE=gpu runs the same tests on MLX's GPU device.
bool on_gpu();
std::string golden_path(const std::string& name);

}  // namespace bodega::test
