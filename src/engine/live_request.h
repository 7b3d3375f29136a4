#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/output.h"
#include "core/request.h"
#include "core/token_constraint.h"
#include "engine/answer_stream.h"
#include "engine/inbox.h"
#include "sample/history.h"
#include "schedule/sequence.h"

namespace bodega::engine {

// Which tokens a choice's next one may be.
struct Allowed {
  std::unique_ptr<core::TokenMatcher> matcher;  // null: any
  core::NextTokens next = core::NextTokens::kAny;
  std::vector<std::uint32_t> words{};        // a bit an id, for kListed
  std::size_t position = std::string::npos;  // tokens made when `words` were
  std::string failure{};                     // why the grammar cannot be followed
};

// One choice of a request that is queued or running.
struct Choice {
  int index = 0;
  schedule::SequenceId sequence = schedule::kNoSequence;
  AnswerStream stream;
  std::optional<sample::History> history{};  // when penalties need it
  Allowed allowed{};
  std::vector<core::TokenId> output{};      // all that was sampled
  std::vector<core::TokenLogprob> fresh{};  // sampled, text not made yet
  // Why sampling ended; the text may still turn it into a stop string's kStop.
  std::optional<core::FinishReason> ended{};
  bool ended_by_token = false;  // the last token of `output` is an end token: never shown
  std::size_t told = 0;  // tokens of `output` that became text; later ones were sampled in vain
  std::optional<core::FinishReason> done{};  // its last output was made
};

struct LiveRequest {
  explicit LiveRequest(Submission&& submission)
      : request(std::move(submission.request)),
        sink(std::move(submission.sink)),
        matchers(std::move(submission.matchers)),
        submitted_s(submission.submitted_s) {}

  core::Request request;
  OutputSink sink;
  std::vector<std::unique_ptr<core::TokenMatcher>> matchers;  // [n], or none; move to the choices
  std::vector<std::unique_ptr<Choice>> choices;               // [n]
  std::vector<core::TokenId> ends;  // all tokens that may end it; banned before min_tokens
  std::vector<core::TokenLogprob> prompt_logprobs;
  bool prompt_logprobs_sent = false;
  bool touched = false;  // has something to tell after this step
  core::Usage usage;
  double submitted_s = 0;  // times on the monotonic clock; 0: not yet
  double started_s = 0;
  double first_token_s = 0;
  double last_token_s = 0;

  bool started() const { return started_s > 0; }
  bool finished() const;
  core::Timings timings() const;
};

}  // namespace bodega::engine
