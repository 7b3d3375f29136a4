#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cache/kv_cache.h"
#include "engine/disk/cache_traffic.h"
#include "engine/inbox.h"
#include "engine/live_request.h"
#include "engine/pressure_valve.h"
#include "engine/runner.h"
#include "engine/stats_board.h"
#include "engine/text_codec.h"
#include "engine/token_draw.h"
#include "schedule/scheduler.h"

namespace bodega::engine {

// Everything that the engine's thread owns. A step is schedule, run, postprocess; text, stop
// strings and delivery of one step happen while the device runs the next. A row that was launched
// before a stop string ended its choice is simply not looked at.
class StepLoop {
 public:
  StepLoop(const EngineConfig& config, const TextCodec& codec, Runner& runner, Inbox& inbox,
           StatsBoard& board);

  void run();  // until the inbox is closed; then cancels what is left

  // After run() threw: tells every client.
  void fail_all(const std::string& why);

 private:
  struct Place {  // whose sequence it is
    LiveRequest* request = nullptr;
    Choice* choice = nullptr;
  };
  struct Step {
    schedule::StepPlan plan;
    std::string failure;  // what launch threw
    Stopwatch watch;      // since it was planned
  };

  // The step: run is launch and collect, with the host's work on the step before in between.
  bool receive();
  Step schedule();
  void launch(Step& step);
  void postprocess();
  void collect(const Step& step);

  // Messages (step_loop.cpp).
  void start(Submission&& submission);
  void add_choice(LiveRequest& request, int index);
  void apply(core::RequestId id, const Control& control);
  void expire_waiters();
  std::optional<double> next_expiry() const;
  std::optional<double> next_wake() const;
  void note_starts(const schedule::StepPlan& plan);
  void learn(const Step& step);
  double service_seconds() const;
  void publish_stats();

  // Grammars (step_constraint.cpp).
  void bind(const schedule::StepPlan& plan);
  static void restrict_draw(const Place& place, TokenDraw& draw);
  static bool follow(Choice& choice, core::TokenId id);

  // Token ids (step_sampling.cpp).
  std::vector<TokenDraw> commit(const schedule::StepPlan& plan, std::span<const float> logits);
  void take_prompt_logprobs(LiveRequest& request, std::span<const float> logits, int rows);
  TokenDraw prepare(const Place& place, std::span<const float> logits) const;
  void accept(TokenDraw& draw);
  void fail_step(const schedule::StepPlan& plan, const std::string& why);

  // Delivery (step_delivery.cpp).
  void touch(LiveRequest& request);
  void deliver(LiveRequest& request);
  bool tell(LiveRequest& request, Choice& choice, core::ChoiceOutput& out);
  void push_fresh(LiveRequest& request, Choice& choice);
  void settle(Choice& choice, core::ChoiceOutput& out);
  void end_request(LiveRequest& request, core::FinishReason reason, ErrorKind kind,
                   const std::string& why);
  void end_all(core::FinishReason reason, const std::string& why);
  void send(LiveRequest& request, core::RequestOutput output);
  void report_finished(const LiveRequest& request);
  void forget(core::RequestId id);

  const EngineConfig& config_;
  const TextCodec& codec_;
  Runner& runner_;
  Inbox& inbox_;
  StatsBoard& board_;
  cost::CostModel* prices_;      // null: unknown
  std::unique_ptr<BlockIo> io_;  // until traffic_ takes it
  cache::KvCache cache_;
  schedule::Scheduler scheduler_;
  CacheTraffic traffic_;
  PressureValve valve_;
  TokenDrawer drawer_;

  std::unordered_map<core::RequestId, std::unique_ptr<LiveRequest>> requests_;
  std::unordered_map<schedule::SequenceId, Place> places_;
  std::deque<core::RequestId> queue_;     // in order of arrival, for time-outs; may hold ghosts
  std::vector<core::RequestId> touched_;  // have something to tell
  schedule::SequenceId last_sequence_ = schedule::kNoSequence;
  EngineStats counters_;
  double service_s_ = 0;  // from start to end of a request, smoothed; 0: none has ended yet
  bool idle_ = true;      // the last step had no rows and left nothing to tell
};

}  // namespace bodega::engine
