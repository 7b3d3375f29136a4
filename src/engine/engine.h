#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/pressure.h"
#include "core/output.h"
#include "core/request.h"
#include "cost/report.h"

namespace bodega::text {
class Tokenizer;
}

namespace bodega::engine {

class Files;
class Runner;
class TextCodec;

// Receives a request's outputs on the engine's thread; must return quickly and never block.
using OutputSink = std::function<void(core::RequestOutput)>;

// A request that has ended by itself, for the request log that `bodega replay` reads.
struct FinishedRequest {
  const core::Request& request;
  std::vector<std::vector<core::TokenId>> outputs;  // [choice], end tokens included
  std::vector<core::FinishReason> reasons;          // [choice]
  core::Usage usage;
};

struct EngineConfig {
  int max_step_tokens = 512;    // ceiling of rows in one step
  int max_sequences = 256;      // running at once
  int max_prefills = 8;         // prompts that share a step
  double max_gap_factor = 2.2;  // a step with prefill over a plain decode step, as predicted
  double max_gap_s = 0;         // in place of the factor, when above 0
  int max_waiting = 100;        // queue bound: one more is refused with kQueueFull
  int queue_timeout_s = 300;    // a waiter older than this ends with kUnavailable
  int context_length = 0;       // tokens, prompt and answer; 0: as many as the pool holds
  int max_prompt_rows = 32;     // rows a step of one request that wants prompt logprobs
  int sampling_threads = 0;     // 0: one a processor; used only when a step's rows are worth it
  bool prefix_cache = true;
  std::int64_t disk_bytes = 0;            // of KV blocks on the SSD; 0: none are kept there
  std::string disk_folder;                // for them; several processes may share it
  std::string build;                      // another build's blocks are not believed
  std::shared_ptr<Files> disk_files;      // tests only: null is the real file system
  std::string model_salt;                 // models and adapters that must not share KV differ here
  std::vector<core::TokenId> end_tokens;  // the model's own, all that any of its files declares
  // Called on the engine's thread; both must return quickly.
  std::function<void(const FinishedRequest&)> on_finished;
  std::function<MemoryPressure()> memory_pressure;  // of the system; empty: not watched
  // Tests only: called before each launch with the number of the step; what it throws fails the
  // step.
  std::function<void(std::uint64_t step)> before_step;
};

struct EngineStats {
  int waiting = 0;
  int running = 0;
  std::uint64_t preempted = 0;  // since start
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated_tokens = 0;
  int blocks_total = 0;
  int blocks_free = 0;         // never used or not referenced
  int blocks_cached = 0;       // not referenced but findable
  int blocks_given_back = 0;   // their memory is the system's while it is short of it
  int memory_pressure = 0;     // 0 none, 1 some, 2 critical
  double last_step_age_s = 0;  // 0 when idle; a stuck loop shows as a growing number
  double predicted_wait_s = 0;
  cost::CostReport cost{};            // all zero without a cost model
  std::uint64_t hot_blocks = 0;       // reused from memory since start
  std::uint64_t restored_blocks = 0;  // read back from the SSD since start
  std::uint64_t spilled_blocks = 0;   // written to it since start
  std::uint64_t bad_blocks = 0;       // files on it that were not to be believed
  std::int64_t disk_bytes = 0;        // on it now
  double saved_s = 0;                 // of computing, by blocks reused
  bool alive = true;                  // the loop thread is running
};

// Owns the model and the loop thread. All public members may be called from any thread.
class Engine {
 public:
  // `make_runner` is called on the engine's own thread, because an MLX stream belongs to the thread
  // that made it. The constructor returns when the runner is ready, or throws what it threw.
  Engine(EngineConfig config, std::shared_ptr<const text::Tokenizer> tokenizer,
         std::function<std::unique_ptr<Runner>()> make_runner);
  Engine(EngineConfig config, std::shared_ptr<const TextCodec> codec,
         std::function<std::unique_ptr<Runner>()> make_runner);
  ~Engine();  // cancels what still runs
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a request and returns its id (request.id is ignored). Throws Error: kInvalidRequest,
  // kQueueFull, kContextLengthExceeded, kUnavailable. The sink's last call has `finished` set.
  core::RequestId submit(core::Request request, OutputSink sink);

  // The client left: the request leaves queue or batch within one step; its sink is not called
  // again after the step that was running. Unknown ids are ignored.
  void cancel(core::RequestId id);

  // Stops or resumes the rows of a request while its client does not read (flow control).
  void pause(core::RequestId id, bool paused);

  EngineStats stats() const;

  // Tokens of prompt and answer that one request can have: the model's context, or what fits the
  // pool.
  int context_length() const;

  // Refuses new requests, waits up to `seconds` for running ones, then cancels them.
  void drain(double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bodega::engine
