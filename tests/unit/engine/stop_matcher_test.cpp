#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace bodega::engine {
namespace {

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopMatcher matcher({"XYZ"}, false);
  EXPECT_EQ(matcher.feed("go XY"), "go ");
  EXPECT_EQ(matcher.feed("!"), "XY!");
  EXPECT_EQ(matcher.feed("XY"), "");
  EXPECT_EQ(matcher.feed("Z on"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.stop(), "XYZ");
  EXPECT_EQ(matcher.feed("more"), "");
}

TEST(StopMatcher, FlushGivesTheUnfinishedTail) {
  StopMatcher matcher({"XYZ"}, false);
  EXPECT_EQ(matcher.feed("go XY"), "go ");
  EXPECT_EQ(matcher.flush(), "XY");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, CanLetTheStopThrough) {
  StopMatcher matcher({"END"}, true);
  EXPECT_EQ(matcher.feed("aENDb"), "aEND");
}

TEST(StopMatcher, OverlappingPrefixesAreTracked) {
  StopMatcher matcher({"aab"}, false);
  EXPECT_EQ(matcher.feed("aaa"), "a");
  EXPECT_EQ(matcher.feed("ab"), "a");
  EXPECT_TRUE(matcher.matched());
}

// The definition without automata: the match that ends first, of those the longest.
std::string reference(const std::string& text, const std::vector<std::string>& stops, bool* hit) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      const bool ends =
          end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (ends) longest = std::max(longest, stop.size());
    }
    if (longest == 0) continue;
    *hit = true;
    return text.substr(0, end - longest);
  }
  *hit = false;
  return text;
}

TEST(StopMatcher, EveryCutOfTheTextGivesTheSame) {
  std::mt19937 random(3);
  auto letters = [&](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int trial = 0; trial < 20'000; ++trial) {
    std::vector<std::string> stops;
    for (std::size_t i = 0; i <= random() % 3; ++i) stops.push_back(letters(1 + random() % 6));
    const std::string text = letters(random() % 30);
    bool hit = false;
    const std::string expected = reference(text, stops, &hit);
    StopMatcher matcher(stops, false);
    std::string got;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 5;
      got += matcher.feed(std::string_view(text).substr(at, size));
      ASSERT_TRUE(expected.starts_with(got)) << "sent a part of a stop string";
      at += size;
    }
    if (!matcher.matched()) got += matcher.flush();
    ASSERT_EQ(got, expected);
    ASSERT_EQ(matcher.matched(), hit);
  }
}

TEST(StopMatcher, ALongStopIsLinear) {
  const std::string text(200'000, 'a');
  StopMatcher matcher({std::string(20'000, 'a') + "b"}, false);
  std::string got = matcher.feed(text);
  got += matcher.flush();
  EXPECT_EQ(got.size(), text.size());
}

}  // namespace
}  // namespace bodega::engine
