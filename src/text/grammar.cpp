#include "text/grammar.h"

#include <utility>

#include "text/textkit_call.h"

namespace bodega::text {
namespace {

constexpr std::size_t kKeptGrammars = 64;

// textkit's refusal has two lines: the place inside the grammar, and what is wrong there.
[[noreturn]] void throw_located(const Error& error) {
  const std::string_view text = error.what();
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) throw error;
  throw Error(error.kind(), std::string(text.substr(line + 1)), std::string(text.substr(0, line)));
}

}  // namespace

struct GrammarCompiler::Handle {
  explicit Handle(textkit_grammars* owned) : grammars(owned) {}
  ~Handle() { textkit_grammars_free(grammars); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  textkit_grammars* grammars;
};

class Grammar {
 public:
  explicit Grammar(textkit_grammar* owned) : grammar_(owned) {}
  ~Grammar() { textkit_grammar_free(grammar_); }
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;
  const textkit_grammar* get() const { return grammar_; }

 private:
  textkit_grammar* grammar_;
};

namespace {

class GrammarMatcher final : public core::TokenMatcher {
 public:
  explicit GrammarMatcher(textkit_matcher* owned) : matcher_(owned) {}
  ~GrammarMatcher() override { textkit_matcher_free(matcher_); }
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  core::NextTokens allowed(std::vector<std::uint32_t>& words) override {
    return static_cast<core::NextTokens>(
        call<std::int32_t>(textkit_matcher_mask, matcher_, words.data(), words.size()));
  }
  bool accept(TokenId id) override { return call<bool>(textkit_matcher_accept, matcher_, id); }

 private:
  textkit_matcher* matcher_;
};

}  // namespace

class GrammarCompiler::Constraint final : public core::TokenConstraint {
 public:
  Constraint(std::shared_ptr<const Handle> grammars, std::shared_ptr<const Grammar> grammar,
             Thought thought)
      : grammars_(std::move(grammars)),
        grammar_(std::move(grammar)),
        thought_(std::move(thought)) {}

  std::unique_ptr<core::TokenMatcher> start() const override {
    return std::make_unique<GrammarMatcher>(call<textkit_matcher*>(
        textkit_matcher_new, grammars_->grammars, grammar_ ? grammar_->get() : nullptr,
        static_cast<std::int32_t>(thought_.before), view_of(thought_.opening),
        view_of(thought_.closing), thought_.most_tokens.value_or(-1)));
  }

 private:
  std::shared_ptr<const Handle> grammars_;
  std::shared_ptr<const Grammar> grammar_;
  Thought thought_;
};

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer,
                                 std::span<const TokenId> ends)
    : tokenizer_(std::move(tokenizer)),
      handle_(std::make_shared<const Handle>(call<textkit_grammars*>(
          textkit_grammars_new, tokenizer_->native(), ends.data(), ends.size()))) {}

GrammarCompiler::~GrammarCompiler() = default;

std::shared_ptr<const Grammar> GrammarCompiler::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->key != key) continue;
    kept_.splice(kept_.begin(), kept_, kept);
    return kept_.front().grammar;
  }
  return nullptr;
}

std::shared_ptr<const Grammar> GrammarCompiler::compile(const core::GrammarSource& source) {
  const auto kind = static_cast<std::int32_t>(source.kind);
  std::string key = std::to_string(kind) + source.text;
  if (std::shared_ptr<const Grammar> kept = find(key)) return kept;
  std::shared_ptr<const Grammar> grammar;
  try {
    grammar = std::make_shared<const Grammar>(call<textkit_grammar*>(
        textkit_grammar_compile, handle_->grammars, kind, view_of(source.text)));
  } catch (const Error& error) {
    throw_located(error);
  }
  const std::lock_guard lock(mutex_);
  kept_.push_front({std::move(key), grammar});
  if (kept_.size() > kKeptGrammars) kept_.pop_back();
  return grammar;
}

std::shared_ptr<const core::TokenConstraint> GrammarCompiler::constrain(
    std::shared_ptr<const Grammar> grammar, Thought thought) const {
  return std::make_shared<const Constraint>(handle_, std::move(grammar), std::move(thought));
}

}  // namespace bodega::text
