#include "engine/answer_stream.h"

#include <gtest/gtest.h>

#include "engine_harness.h"

namespace bodega::engine {
namespace {

class AnswerStreamTest : public testing::Test {
 protected:
  AnswerStream stream(core::StopParams stop) {
    return AnswerStream(std::make_unique<WordDetokenizer>(codec_), stop);
  }
  static void push(AnswerStream& stream, core::TokenId id) {
    core::TokenLogprob token;
    token.id = id;
    stream.push(token, true);
  }
  static core::ChoiceOutput drain(AnswerStream& stream) {
    core::ChoiceOutput out;
    stream.drain(out, true);
    return out;
  }
  WordCodec codec_{{{1, "go "}, {2, "XY"}, {3, "Z"}, {4, "!"}, {5, "e~"}, {6, "'"}}};
};

TEST_F(AnswerStreamTest, TokensWaitWithTheirText) {
  AnswerStream s = stream({.stop = {"XYZ"}});
  push(s, 1);
  push(s, 2);
  core::ChoiceOutput out = drain(s);
  EXPECT_EQ(out.text, "go ");
  EXPECT_EQ(out.tokens, (std::vector<core::TokenId>{1}));
  EXPECT_EQ(out.logprobs.size(), 1U);
  push(s, 4);
  out = drain(s);
  EXPECT_EQ(out.text, "XY!");
  EXPECT_EQ(out.tokens, (std::vector<core::TokenId>{2, 4}));
}

TEST_F(AnswerStreamTest, AStopStringCutsTheTextAndKeepsTheCount) {
  AnswerStream s = stream({.stop = {"XYZ"}});
  for (const core::TokenId id : {1, 2, 3}) push(s, id);
  EXPECT_TRUE(s.stopped());
  const core::ChoiceOutput out = drain(s);
  EXPECT_EQ(out.text, "go ");
  EXPECT_EQ(out.tokens.size(), 3U);
}

TEST_F(AnswerStreamTest, TheFirstTokensMayNotStop) {
  AnswerStream s = stream({.min_tokens = 2, .stop = {"Z"}});
  push(s, 3);
  push(s, 3);
  EXPECT_FALSE(s.stopped());
  push(s, 3);
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(drain(s).text, "ZZ");
}

TEST_F(AnswerStreamTest, AnUnfinishedCharacterComesOutAtTheEnd) {
  AnswerStream s = stream({});
  push(s, 5);
  EXPECT_EQ(drain(s).text, "");
  s.finish();
  EXPECT_EQ(drain(s).text, "e~");
}

TEST_F(AnswerStreamTest, TheRestOfTheTextIsSearchedToo) {
  AnswerStream s = stream({.stop = {"e~"}});
  push(s, 5);
  s.finish();
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(drain(s).text, "");
}

}  // namespace
}  // namespace bodega::engine
