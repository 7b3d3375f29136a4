#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/grammar_source.h"
#include "core/token_constraint.h"
#include "text/tokenizer.h"

namespace bodega::text {

// Whether a block of thought comes before the answer that a grammar binds.
enum class ThoughtBefore : std::int32_t { kNone = 0, kMayOpen = 1, kOpen = 2 };

struct Thought {
  ThoughtBefore before = ThoughtBefore::kNone;
  std::string opening = "<think>";
  std::string closing = "</think>";
  std::optional<int> most_tokens{};  // then the closing tag is written
};

class Grammar;  // compiled, immutable

// Compiles grammars for one tokenizer and keeps those that were used last. Thread-safe; a compile
// may take a second, so it belongs on a thread of its own.
class GrammarCompiler {
 public:
  // `ends`: the ids that may end an answer.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, std::span<const TokenId> ends);
  ~GrammarCompiler();

  // Throws Error(kInvalidRequest) whose param is the path inside the text: ".properties.a.not", or
  // "" for the whole of it.
  std::shared_ptr<const Grammar> compile(const core::GrammarSource& source);

  // A request's constraint; without a grammar the answer is free after the thought.
  std::shared_ptr<const core::TokenConstraint> constrain(std::shared_ptr<const Grammar> grammar,
                                                         Thought thought) const;

 private:
  struct Handle;
  class Constraint;
  struct Kept {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
  };

  std::shared_ptr<const Grammar> find(const std::string& key);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Handle> handle_;
  std::mutex mutex_;      // of the list only: one slow compile does not stop another
  std::list<Kept> kept_;  // the last used first
};

}  // namespace bodega::text
