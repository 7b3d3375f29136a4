#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "golden_files.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace bodega::text {
namespace {

// One tokenizer and one template serve all threads: each gets what it gets alone.
TEST(Concurrency, ThreadsShareTokenizerAndTemplate) {
  const std::shared_ptr<const Tokenizer> tokenizer =
      Tokenizer::from_json(read_golden("added.tokenizer.json"));
  const ChatTemplate chat_template(read_golden("templates/qwen3_thinking.jinja"), {});
  const auto answer = [&](int who) {
    const std::string context = R"({"messages": [{"role": "user", "content": "I am )" +
                                std::string(static_cast<std::size_t>(who) + 1, 'x') + R"("}]})";
    const std::vector<TokenId> ids = tokenizer->encode_rendered(chat_template.render(context));
    return streamed(tokenizer, ids);
  };
  std::vector<std::string> alone;
  for (int who = 0; who < 4; ++who) alone.push_back(answer(who));
  std::vector<int> wrong(alone.size(), 0);
  std::vector<std::thread> threads;
  for (std::size_t who = 0; who < alone.size(); ++who) {
    threads.emplace_back([&, who] {
      for (int round = 0; round < 50; ++round)
        wrong[who] += answer(static_cast<int>(who)) != alone[who] ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(alone.size(), 0));
}

}  // namespace
}  // namespace bodega::text
