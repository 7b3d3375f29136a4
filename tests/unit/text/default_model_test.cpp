#include <gtest/gtest.h>

#include "golden_files.h"
#include "model/checkpoint.h"
#include "text/tokenizer.h"

namespace bodega::text {
namespace {

TEST(DefaultModel, HasTheIdsOfHuggingFace) {
  const auto checkpoint = model::Checkpoint::open(BODEGA_TEST_MODEL);
  const std::shared_ptr<Tokenizer> tokenizer = Tokenizer::from_gguf(*checkpoint->gguf_vocabulary());
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  const json::value golden = json::parse(read_golden("tokenizers.json"));
  expect_same_ids(tokenizer, golden.at("texts").as_array(), golden.at("default_model"), "smollm2");
}

}  // namespace
}  // namespace bodega::text
