#include <algorithm>
#include <set>

#include "base/errors.h"
#include "core/token_constraint.h"
#include "engine_harness.h"

namespace bodega::engine {
namespace {

using core::FinishReason;
using Ids = std::vector<core::TokenId>;

// Allows `steps[i]` at place i, an empty set meaning anything but an end; after the last the answer
// is complete. With `fail_at` the grammar fails there.
class StepsConstraint final : public core::TokenConstraint {
 public:
  explicit StepsConstraint(std::vector<std::set<core::TokenId>> steps, int fail_at = -1)
      : steps_(std::move(steps)), fail_at_(fail_at) {}

  std::unique_ptr<core::TokenMatcher> start() const override {
    return std::make_unique<Matcher>(*this);
  }

 private:
  class Matcher final : public core::TokenMatcher {
   public:
    explicit Matcher(const StepsConstraint& owner)
        : steps_(owner.steps_), fail_at_(owner.fail_at_) {}
    core::NextTokens allowed(std::vector<std::uint32_t>& words) override {
      if (static_cast<int>(place_) == fail_at_) {
        throw Error(ErrorKind::kInvalidRequest, "too costly");
      }
      if (steps_[place_].empty()) return core::NextTokens::kAnyButEnd;
      std::fill(words.begin(), words.end(), 0U);
      for (const core::TokenId id : steps_[place_]) {
        words[static_cast<std::size_t>(id) / 32] |= 1U << (id % 32);
      }
      return core::NextTokens::kListed;
    }
    bool accept(core::TokenId id) override {
      EXPECT_TRUE(steps_[place_].empty() || steps_[place_].contains(id)) << id << " at " << place_;
      return ++place_ == steps_.size();
    }

   private:
    std::vector<std::set<core::TokenId>> steps_;
    std::size_t place_ = 0;
    int fail_at_;
  };

  std::vector<std::set<core::TokenId>> steps_;
  int fail_at_;
};

std::shared_ptr<const core::TokenConstraint> steps(std::vector<std::set<core::TokenId>> steps,
                                                   int fail_at = -1) {
  return std::make_shared<const StepsConstraint>(std::move(steps), fail_at);
}

class EngineConstraintTest : public EngineTest {};

TEST_F(EngineConstraintTest, OnlyAllowedTokensAreChosenAndTheAnswerEndsWithTheGrammar) {
  auto engine = make(config());
  core::Request bound = request(prompt_of(20), 50);
  bound.constraint = steps({{5}, {40, 41}, {62}});
  const ChoiceResult choice = run(*engine, bound).choices.at(0);
  ASSERT_EQ(choice.tokens.size(), 3U);
  EXPECT_EQ(choice.tokens[0], 5);
  EXPECT_TRUE(choice.tokens[1] == 40 || choice.tokens[1] == 41);
  EXPECT_EQ(choice.tokens[2], 62);
  EXPECT_EQ(choice.finish, FinishReason::kStop);
  expect_all_blocks_back(*engine);
}

TEST_F(EngineConstraintTest, AloneAndAmongOthersTheSameAndTheOthersAreFree) {
  auto engine = make(config());
  std::vector<std::set<core::TokenId>> even(12);
  for (auto& ids : even) {
    for (core::TokenId id = 0; id < 60; id += 2) ids.insert(id);
  }
  core::Request bound = request(prompt_of(9), 12);
  bound.sampling.temperature = 1;
  bound.sampling.seed = 7;
  bound.n = 3;
  core::Request free = request(prompt_of(30, 1), 12);
  free.sampling.logprobs = true;
  const Ids free_alone = run(*engine, free).choices.at(0).tokens;
  bound.constraint = steps(even);
  const Result alone = run(*engine, bound);
  for (int i = 0; i < 12; ++i) engine->submit(i % 2 == 0 ? bound : free, answers_.sink(i));
  for (int i = 0; i < 12; ++i) {
    const Result result = answers_.wait(i);
    if (i % 2 == 1) {
      EXPECT_EQ(result.choices.at(0).tokens, free_alone);
      continue;
    }
    for (int c = 0; c < 3; ++c) EXPECT_EQ(result.choices.at(c).tokens, alone.choices.at(c).tokens);
  }
  EXPECT_NE(alone.choices.at(0).tokens, alone.choices.at(1).tokens);
}

TEST_F(EngineConstraintTest, AnEndIsChosenBeforeMinTokensOnlyWhereNothingElseIsAllowed) {
  auto engine = make(config());
  core::Request bound = request(prompt_of(5), 20);
  bound.stop.min_tokens = 10;
  bound.constraint = steps({{kEnd, 3}, {kEnd}, {4}});
  const ChoiceResult choice = run(*engine, bound).choices.at(0);
  EXPECT_EQ(choice.tokens, (Ids{3, kEnd}));
  EXPECT_EQ(choice.finish, FinishReason::kStop);
}

TEST_F(EngineConstraintTest, BeforeTheGrammarBindsTheAnswerDoesNotEnd) {
  auto engine = make(config());
  core::Request bound = scripted({1, kEnd, 2});
  bound.constraint = steps({{}, {}, {9}, {10}});
  const ChoiceResult choice = run(*engine, bound).choices.at(0);
  ASSERT_EQ(choice.tokens.size(), 4U);
  EXPECT_EQ(choice.tokens[0], 1);
  EXPECT_NE(choice.tokens[1], kEnd);
  EXPECT_EQ(choice.tokens[2], 9);
  EXPECT_EQ(choice.tokens[3], 10);
}

TEST_F(EngineConstraintTest, PenaltiesAndBiasStayInsideTheGrammar) {
  auto engine = make(config());
  core::Request bound = request(prompt_of(5), 20);
  bound.sampling.frequency_penalty = 2;
  bound.sampling.logit_bias = {{7, 100.0F}, {20, -100.0F}};
  bound.constraint = steps({{20}, {20, 21}, {20}});
  EXPECT_EQ(run(*engine, bound).choices.at(0).tokens, (Ids{20, 21, 20}));
}

TEST_F(EngineConstraintTest, AGrammarThatCannotBeFollowedEndsItsOwnRequestAsTheClientsMistake) {
  auto engine = make(config());
  core::Request bound = request(prompt_of(5), 20);
  bound.constraint = steps({{3}, {4}, {5}}, 1);
  const Result result = run(*engine, bound);
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kError);
  EXPECT_EQ(result.last.error_kind, ErrorKind::kInvalidRequest);
  EXPECT_THAT(result.last.error, testing::HasSubstr("too costly"));
  EXPECT_EQ(run(*engine, request(prompt_of(5), 4)).choices.at(0).tokens.size(), 4U);
}

}  // namespace
}  // namespace bodega::engine
