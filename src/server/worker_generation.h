#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/answer.h"
#include "http/server.h"
#include "server/answers.h"
#include "server/worker_model.h"

namespace bodega::server {

struct DeliveryOptions {
  std::size_t output_bytes = 256 * 1024;  // queued bytes beyond which a sequence rests
  std::chrono::milliseconds keep_alive{5000};
};

// Called once with the output ids of every choice, prompt by prompt, when an answer is complete.
using FinishHook = std::function<void(const std::vector<std::vector<core::TokenId>>& choices)>;

// One answer in progress: the engine requests behind it (one a prompt), the writer that turns their
// outputs into bytes, and the client's exchange. It lives as long as one of these three needs it.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(WorkerModel& model, std::shared_ptr<http::Exchange> exchange, DeliveryOptions options,
             bool stream, int n);

  // Hands the requests to the engine. Throws what submit() throws, with nothing left running.
  void start(std::unique_ptr<api::AnswerWriter> writer, std::vector<core::Request> requests,
             http::Loop& loop);

  // Both before start().
  void on_finish(FinishHook hook) { hook_ = std::move(hook); }
  void fail_after(int tokens) { fail_after_ = tokens; }  // tests only; -1: never

 private:
  void deliver(int prompt, const core::RequestOutput& output);  // on the engine's thread
  void fail(const Error& error);
  void send(std::string bytes);
  void begin_stream();
  void keep_tokens(int prompt, const core::RequestOutput& output);
  void schedule_keep_alive(http::Loop& loop);
  void keep_alive();
  void hold_back();
  void cancel_all();
  std::vector<core::RequestId> ids() const;

  WorkerModel& model_;
  const std::shared_ptr<http::Exchange> exchange_;
  const DeliveryOptions options_;
  const bool stream_;
  const int n_;
  FinishHook hook_;
  int fail_after_ = -1;

  // Outputs come on the engine's thread, keep-alives on the loop's.
  mutable std::mutex mutex_;
  std::unique_ptr<api::AnswerWriter> writer_;
  std::vector<std::vector<core::TokenId>> tokens_;  // by choice; kept only for the hook
  int token_count_ = 0;
  std::vector<core::RequestId> ids_;
  bool begun_ = false;  // the head of a stream has been sent
  bool ended_ = false;
  bool quiet_ = true;  // nothing was sent since the last keep-alive
};

}  // namespace bodega::server
