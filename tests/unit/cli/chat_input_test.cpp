#include "cli/chat_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace bodega::cli {
namespace {

using testing::ElementsAre;

std::vector<std::string> read_all(const std::string& typed) {
  std::istringstream in(typed);
  ChatInput input(in, nullptr);
  std::vector<std::string> messages;
  while (const auto message = input.next()) messages.push_back(*message);
  return messages;
}

TEST(ChatInput, ALineIsAMessage) {
  EXPECT_THAT(read_all("Hi\n  /stats \n\nlast"), ElementsAre("Hi", "/stats", "", "last"));
}

TEST(ChatInput, QuotesHoldSeveralLines) {
  EXPECT_THAT(read_all("\"\"\"\none\n  two\n\"\"\"\nnext\n"), ElementsAre("one\n  two", "next"));
  EXPECT_THAT(read_all("\"\"\"one\n\ntwo\"\"\"\n"), ElementsAre("one\n\ntwo"));
  EXPECT_THAT(read_all("\"\"\"all in one\"\"\"\n"), ElementsAre("all in one"));
}

TEST(ChatInput, OpenQuotesEndWithTheInput) {
  EXPECT_THAT(read_all("\"\"\"one\ntwo"), ElementsAre("one\ntwo"));
}

TEST(ChatInput, ABackslashGoesOn) {
  EXPECT_THAT(read_all("one\\\ntwo\\\nthree\nfour\n"), ElementsAre("one\ntwo\nthree", "four"));
  EXPECT_THAT(read_all("cut\\"), ElementsAre("cut"));
}

TEST(ChatInput, PromptsAreShownWhereTheyAreWanted) {
  std::istringstream in("\"\"\"a\nb\"\"\"\n");
  std::ostringstream out;
  ChatInput input(in, &out);
  EXPECT_EQ(input.next(), "a\nb");
  EXPECT_EQ(out.str(), ">>> ... ");
}

}  // namespace
}  // namespace bodega::cli
