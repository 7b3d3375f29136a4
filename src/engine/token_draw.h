#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/thread_pool.h"
#include "core/output.h"
#include "sample/row.h"
#include "sample/sampler.h"
#include "schedule/sequence.h"

namespace bodega::engine {

// One row on its way to a token.
struct TokenDraw {
  schedule::SequenceId sequence = schedule::kNoSequence;
  sample::Row row;
  std::optional<core::TokenId> scripted;  // takes the place of the sampled id
  core::TokenLogprob token;               // the result
  std::string error;                      // why there is none
  ErrorKind error_kind = ErrorKind::kInternal;
};

// Draws the tokens of a step: in turn when that is quick, else on all threads. The result of a row
// does not depend on which.
class TokenDrawer {
 public:
  explicit TokenDrawer(int threads);

  void draw(std::span<TokenDraw> draws);

  // Calls work(0) to work(count - 1), on all threads; it must not throw.
  void for_each(int count, const std::function<void(int)>& work);

 private:
  ThreadPool& pool();
  static void draw_one(TokenDraw& draw, sample::Sampler& sampler) noexcept;

  int threads_;
  std::vector<sample::Sampler> samplers_;  // [threads]
  std::unique_ptr<ThreadPool> pool_;       // made when first needed
};

}  // namespace bodega::engine
