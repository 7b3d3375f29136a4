// The promises to the bit, on whole models: alone = in any batch, chunked = whole, any number of
// threads, and again after the cache held something else.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model_driver.h"

namespace bodega::test {
namespace {

using Rows = std::vector<std::vector<float>>;

std::vector<int> random_tokens(int count, int vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> tokens(count);
  for (int& t : tokens) t = static_cast<int>(random() % vocab);
  return tokens;
}

void expect_same_bits(const Rows& want, const Rows& got, const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (std::size_t row = 0; row < want.size(); ++row) {
    ASSERT_EQ(0, std::memcmp(want[row].data(), got[row].data(), want[row].size() * sizeof(float)))
        << what << ", row " << row;
  }
}

struct Model {
  std::string name;
  std::string path;
  int tokens;
};

std::vector<Model> models() {
  std::vector<Model> all;
  for (const char* name : {"llama3", "mixed_window", "qwen2", "qwen3"}) {
    all.push_back({name, golden_path(name), 150});
  }
  all.push_back({"smollm2", BODEGA_TEST_MODEL, 75});
  return all;
}

class Promises : public testing::TestWithParam<std::tuple<Model, const char*>> {
 protected:
  Promises() : model_(std::get<0>(GetParam())), isa_(std::get<1>(GetParam())) {}

  // Twins promise a tolerance only.
  void SetUp() override {
    if (on_gpu() && !driver()->runner().executor().exact()) GTEST_SKIP() << "twins run here";
  }

  std::unique_ptr<ModelDriver> driver(int threads = 2) const {
    return std::make_unique<ModelDriver>(model_.path, DriverOptions{threads, false, isa_});
  }
  std::vector<int> tokens(const ModelDriver& d, unsigned seed) const {
    return random_tokens(model_.tokens, d.config().vocab_size, seed);
  }

  Model model_;
  const char* isa_;
};

TEST_P(Promises, ChunkedEqualsWholeWhateverTheThreads) {
  const auto one = driver(1);
  const std::vector<int> prompt = tokens(*one, 1);
  const Rows whole = one->whole(prompt, model_.tokens);
  const auto three = driver(3);
  for (int chunk : {1, 3, 16, 50}) {
    expect_same_bits(whole, three->whole(prompt, chunk), "chunk " + std::to_string(chunk));
  }
}

TEST_P(Promises, AloneEqualsInAnyBatch) {
  const auto d = driver();
  const std::vector<int> prompt = tokens(*d, 2);
  const Rows alone = d->whole(prompt, model_.tokens);
  // The same sequence among others that prefill, decode and come and go.
  std::mt19937 random(9);
  std::vector<int> position(ModelDriver::kMaxSequences, 0);
  Rows mixed;
  while (position[2] < model_.tokens) {
    std::vector<Piece> pieces;
    int first_row = 0;
    int rows = 0;
    for (int s = 0; s < ModelDriver::kMaxSequences; ++s) {
      if (s != 2 && random() % 3 == 0) continue;
      const int left = (s == 2 ? model_.tokens : 600) - position[s];
      const int count = std::min<int>(left, random() % 2 == 0 ? 1 : 1 + random() % 40);
      if (count <= 0) continue;
      const std::vector<int> source =
          s == 2 ? prompt : random_tokens(600, d->config().vocab_size, 100 + s);
      pieces.push_back(
          {s, {source.begin() + position[s], source.begin() + position[s] + count}, position[s]});
      if (s == 2) first_row = rows;
      rows += count;
      position[s] += count;
    }
    const int count =
        static_cast<int>(std::find_if(pieces.begin(), pieces.end(), [](const Piece& p) {
                           return p.sequence == 2;
                         })->tokens.size());
    const Rows step = d->step(pieces);
    mixed.insert(mixed.end(), step.begin() + first_row, step.begin() + first_row + count);
  }
  expect_same_bits(alone, mixed, "mixed batch");
}

TEST_P(Promises, WarmEqualsColdAndUsedMemoryIsLikeNew) {
  const auto d = driver();
  const std::vector<int> prompt = tokens(*d, 3);
  const Rows cold = d->whole(prompt, 64, 1);
  d->whole(tokens(*d, 4), 64, 1);  // other text in the same blocks
  expect_same_bits(cold, d->whole(prompt, 64, 1), "used blocks");
  // Only the last tokens again, over a cache that holds the rest.
  const int from = model_.tokens - 5;
  const Piece tail{1, {prompt.begin() + from, prompt.end()}, from};
  expect_same_bits({cold.begin() + from, cold.end()}, d->step({tail}), "warm prefix");
}

std::string name_of(const testing::TestParamInfo<std::tuple<Model, const char*>>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, Promises,
                         testing::Combine(testing::ValuesIn(models()),
                                          testing::ValuesIn(available_isas())),
                         name_of);

}  // namespace
}  // namespace bodega::test
