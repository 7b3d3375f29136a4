#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/reasoning.h"
#include "base/errors.h"
#include "core/grammar_source.h"
#include "core/request.h"
#include "core/token_constraint.h"
#include "engine/engine.h"
#include "server/options.h"

namespace bodega::server {

// What does not change while a model is loaded.
struct ModelFacts {
  std::string id;
  std::string path;
  std::string fingerprint;  // weights, tokenizer, template, kernels, instruction set, precision
  std::int64_t created_unix_s = 0;
  int context_length = 0;
  int vocab_size = 0;
  std::uint64_t weight_bytes = 0;
};

// The thought before an answer, and how long it may be.
struct ThoughtLimit {
  api::Reasoning reasoning = api::Reasoning::kNone;
  std::optional<int> most_tokens;
};

// A loaded model as the worker's routes see it. Every member may be called from any thread. The one
// real implementation is EngineModel; tests put a small one in its place.
class WorkerModel {
 public:
  virtual ~WorkerModel() = default;
  virtual const ModelFacts& facts() const = 0;

  // Text. Raw prompts: control tokens that are spelt out are meant.
  virtual std::vector<core::TokenId> encode(std::string_view text, bool add_special,
                                            bool parse_special) const = 0;
  virtual std::string decode(std::span<const core::TokenId> ids, bool skip_special) const = 0;
  virtual std::string token_bytes(core::TokenId id) const = 0;

  // Chats: guard() each string of a message, render, encode_rendered().
  virtual std::string guard(std::string_view message_text) const = 0;
  virtual std::vector<core::TokenId> encode_rendered(std::string_view rendered) const = 0;
  // Throws Error(kInvalidRequest) where the model has no chat template, or the template raises.
  virtual std::string render(std::string_view context_json) const = 0;
  virtual bool template_mentions(std::string_view word) const = 0;
  virtual std::string_view template_source() const { return {}; }

  // Compiles what an answer keeps to (null: nothing), after the thought that it may begin with.
  // Throws Error(kInvalidRequest) whose param is the place inside the grammar.
  virtual std::shared_ptr<const core::TokenConstraint> bind(const core::GrammarSource* /*source*/,
                                                            const ThoughtLimit& /*thought*/) {
    throw Error(ErrorKind::kInvalidRequest, "This model cannot bind answers to a grammar.");
  }

  // The engine, as engine::Engine has it.
  virtual core::RequestId submit(core::Request request, engine::OutputSink sink) = 0;
  virtual void cancel(core::RequestId id) = 0;
  virtual void pause(core::RequestId id, bool paused) = 0;
  virtual engine::EngineStats stats() const = 0;
  virtual void drain(double seconds) = 0;

  // Tests only: under --scripted-model, puts the ids of the named script into the request; returns
  // after how many tokens it is to fail, -1 for never. Throws kInvalidRequest for an unknown name.
  virtual int apply_script(std::string_view /*name*/, core::Request& /*request*/) const {
    return -1;
  }

  // Device figures for /v1/admin/loaded-models: {memory: {...}, engine: {...}}.
  virtual boost::json::object device_report() const = 0;
};

// Loads the model of a worker's options; called once, on a thread of its own.
using ModelLoader = std::function<std::unique_ptr<WorkerModel>(const WorkerOptions&)>;

}  // namespace bodega::server
