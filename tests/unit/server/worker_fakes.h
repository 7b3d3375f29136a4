#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/errors.h"
#include "http/server.h"
#include "server/worker_model.h"

namespace bodega::server {

// An exchange without a socket: keeps what was written and lets a test be the client.
class FakeExchange : public http::Exchange {
 public:
  void respond(http::Response response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    ended_ = true;
    changed_.notify_all();
  }
  void start(int status, http::Headers headers) override {
    const std::lock_guard lock(mutex_);
    response_.status = status;
    response_.headers = std::move(headers);
    begun_ = true;
  }
  void write(std::string bytes) override {
    const std::lock_guard lock(mutex_);
    writes_.push_back(bytes);
    response_.body += bytes;
    changed_.notify_all();
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void abort() override { ADD_FAILURE() << "aborted"; }
  bool closed() const override { return false; }
  std::size_t queued_bytes() const override { return queued ? queued() : 0; }
  void on_close(std::function<void()> callback) override { leave = std::move(callback); }
  void on_drain(std::function<void()> callback) override { drain = std::move(callback); }

  bool wait_for(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), condition);
  }
  bool wait_for_end() {
    return wait_for([this] { return ended_; });
  }
  bool wait_for_writes(std::size_t count) {
    return wait_for([this, count] { return writes_.size() >= count; });
  }

  bool ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  bool begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  int status() const { return response_.status; }
  const std::string& body() const { return response_.body; }
  std::string header(const std::string& name) const {
    return http::find_header(response_.headers, name);
  }
  const std::vector<std::string>& writes() const { return writes_; }

  std::function<std::size_t()> queued;
  std::function<void()> leave;
  std::function<void()> drain;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  http::Response response_;
  std::vector<std::string> writes_;
  bool begun_ = false;
  bool ended_ = false;
};

// A model of which a test plays the engine. A token is a byte.
class FakeModel : public WorkerModel {
 public:
  FakeModel() {
    facts_.id = "fake";
    facts_.fingerprint = "fp_fake";
    facts_.context_length = 100;
    facts_.vocab_size = 256;
  }
  const ModelFacts& facts() const override { return facts_; }
  std::vector<core::TokenId> encode(std::string_view text, bool, bool) const override {
    if (on_encode) on_encode();
    std::vector<core::TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(std::span<const core::TokenId> ids, bool) const override {
    return {ids.begin(), ids.end()};
  }
  std::string token_bytes(core::TokenId id) const override {
    return std::string(1, static_cast<char>(id));
  }
  std::string guard(std::string_view text) const override {
    return "(" + std::string(text) + std::string(")");
  }
  std::vector<core::TokenId> encode_rendered(std::string_view rendered) const override {
    return encode(rendered, false, true);
  }
  std::string render(std::string_view context) const override { return std::string(context); }
  bool template_mentions(std::string_view) const override { return false; }

  core::RequestId submit(core::Request request, engine::OutputSink sink) override {
    const std::lock_guard lock(mutex_);  // handlers run on several threads
    if (static_cast<int>(requests.size()) == refuse_from) {
      Error error(ErrorKind::kQueueFull, "The queue is full.");
      error.retry_after_s = 3;
      throw error;
    }
    requests.push_back(std::move(request));
    sinks.push_back(std::move(sink));
    return requests.size();
  }
  void cancel(core::RequestId id) override { cancelled.push_back(id); }
  void pause(core::RequestId id, bool paused) override { pauses.emplace_back(id, paused); }
  engine::EngineStats stats() const override { return given_stats; }
  void drain(double) override {}
  boost::json::object device_report() const override {
    return {{"memory", {{"weights_mb", 1}}}, {"engine", {{"kernels", "fake"}}}};
  }

  std::function<void()> on_encode;
  int refuse_from = -1;
  std::vector<core::Request> requests;
  std::vector<engine::OutputSink> sinks;
  std::vector<core::RequestId> cancelled;
  std::vector<std::pair<core::RequestId, bool>> pauses;
  engine::EngineStats given_stats;

 private:
  std::mutex mutex_;
  ModelFacts facts_;
};

inline core::RequestOutput say(const std::string& text,
                               std::optional<core::FinishReason> finish = std::nullopt) {
  core::ChoiceOutput choice;
  choice.text = text;
  for (const char c : text) choice.tokens.push_back(static_cast<unsigned char>(c));
  choice.finish = finish;
  core::RequestOutput output;
  output.choices.push_back(std::move(choice));
  output.finished = finish.has_value();
  return output;
}

}  // namespace bodega::server
