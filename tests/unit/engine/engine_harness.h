#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/text_codec.h"
#include "kv_echo_runner.h"

namespace bodega::engine {

inline constexpr core::TokenId kEnd = 63;

// Token i is the i-th of some words, or "<i>"; a test may set its own words.
class WordCodec : public TextCodec {
 public:
  explicit WordCodec(std::map<core::TokenId, std::string> words = {}) : words_(std::move(words)) {}
  std::unique_ptr<Detokenizer> detokenizer(std::span<const core::TokenId>,
                                           std::span<const core::TokenId>) const override;
  std::string token_text(core::TokenId id) const override {
    const auto found = words_.find(id);
    if (found != words_.end()) return found->second;
    std::string text = "<";
    return text.append(std::to_string(id)).append(">");
  }

 private:
  std::map<core::TokenId, std::string> words_;
};

class WordDetokenizer : public Detokenizer {
 public:
  explicit WordDetokenizer(const WordCodec& codec) : codec_(codec) {}
  std::string push(core::TokenId id) override {
    // A word that ends in '~' is an unfinished character: it waits for the next.
    std::string text = std::exchange(waiting_, {}) + codec_.token_text(id);
    if (!text.empty() && text.back() == '~') {
      waiting_ = text;
      return {};
    }
    return text;
  }
  std::string flush() override { return std::exchange(waiting_, {}); }

 private:
  const WordCodec& codec_;
  std::string waiting_;
};

inline std::unique_ptr<Detokenizer> WordCodec::detokenizer(std::span<const core::TokenId>,
                                                           std::span<const core::TokenId>) const {
  return std::make_unique<WordDetokenizer>(*this);
}

struct ChoiceResult {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<core::TokenId> tokens;
  std::vector<core::TokenLogprob> logprobs;
  std::optional<core::FinishReason> finish;
  std::string stop_reason;
};

struct Result {
  std::map<int, ChoiceResult> choices;
  std::vector<core::TokenLogprob> prompt_logprobs;
  core::RequestOutput last;
  int calls = 0;
  bool finished = false;
};

// Gathers what sinks are told, for a test's thread to wait on.
class Answers {
 public:
  OutputSink sink(int key) {
    return [this, key](core::RequestOutput output) { take(key, std::move(output)); };
  }
  Result wait(int key) {
    std::unique_lock lock(mutex_);
    const bool done =
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return results_[key].finished; });
    EXPECT_TRUE(done) << "request " << key << " never finished";
    return results_[key];
  }
  void wait_for_tokens(int key, std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return results_[key].choices[0].tokens.size() >= count || results_[key].finished;
    });
  }
  Result now(int key) {
    std::lock_guard lock(mutex_);
    return results_[key];
  }

 private:
  void take(int key, core::RequestOutput output) {
    std::lock_guard lock(mutex_);
    Result& result = results_[key];
    EXPECT_FALSE(result.finished) << "output after the last one";
    ++result.calls;
    for (core::ChoiceOutput& out : output.choices) merge(result.choices[out.choice], out);
    for (auto& entry : output.prompt_logprobs) result.prompt_logprobs.push_back(std::move(entry));
    result.finished = output.finished;
    output.choices.clear();
    result.last = std::move(output);
    changed_.notify_all();
  }
  static void merge(ChoiceResult& choice, core::ChoiceOutput& out) {
    EXPECT_FALSE(choice.finish.has_value()) << "output after the choice's last one";
    choice.text += out.text;
    if (!out.text.empty()) choice.pieces.push_back(out.text);
    choice.tokens.insert(choice.tokens.end(), out.tokens.begin(), out.tokens.end());
    choice.logprobs.insert(choice.logprobs.end(), out.logprobs.begin(), out.logprobs.end());
    choice.finish = out.finish;
    choice.stop_reason = out.stop_reason;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Result> results_;
};

// Holds the loop before chosen steps, so that a test can act at a known moment.
class Gate {
 public:
  explicit Gate(bool open) : open_(open) {}
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() { set(true); }
  void close() { set(false); }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    const int before = arrived_;
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return arrived_ > before || held(); });
  }

 private:
  bool held() const { return !open_ && arrived_ > 0; }
  void set(bool open) {
    std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_;
  int arrived_ = 0;
};

class EngineTest : public testing::Test {
 protected:
  static EngineConfig config() {
    EngineConfig config;
    config.max_step_tokens = 32;
    config.end_tokens = {kEnd};
    return config;
  }
  std::unique_ptr<Engine> make(EngineConfig config, int blocks = 256,
                               std::shared_ptr<const TextCodec> codec = nullptr) {
    if (codec == nullptr) codec = std::make_shared<const WordCodec>();
    return std::make_unique<Engine>(std::move(config), std::move(codec), [this, blocks] {
      return std::make_unique<KvEchoRunner>(blocks, observer_);
    });
  }
  static core::Request request(std::vector<core::TokenId> prompt, int max_tokens) {
    core::Request request;
    request.prompt = std::move(prompt);
    request.stop.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    return request;
  }
  static core::Request scripted(std::vector<core::TokenId> script) {
    core::Request request = EngineTest::request({1, 2, 3}, 100);
    request.scripted = std::move(script);
    return request;
  }
  static std::vector<core::TokenId> prompt_of(int length, int salt = 0) {
    std::vector<core::TokenId> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back((i * 7 + salt * 13 + i / 5) % 60);
    return prompt;
  }
  template <typename Condition>
  static void eventually(Condition condition) {
    for (int i = 0; i < 20'000 && !condition(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(condition());
  }
  static void expect_all_blocks_back(const Engine& engine) {
    eventually([&] { return engine.stats().blocks_free == engine.stats().blocks_total; });
    EXPECT_EQ(engine.stats().running + engine.stats().waiting, 0);
  }
  Result run(Engine& engine, core::Request request) {
    const int key = ++last_key_;
    engine.submit(std::move(request), answers_.sink(key));
    return answers_.wait(key);
  }

  std::shared_ptr<EchoObserver> observer_ = std::make_shared<EchoObserver>();
  Answers answers_;
  int last_key_ = 1'000'000;
};

}  // namespace bodega::engine
