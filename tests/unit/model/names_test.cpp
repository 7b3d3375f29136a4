#include "model/names.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/checkpoint_floats.h"

namespace bodega::model {
namespace {

TEST(Names, TranslatesGguf) {
  EXPECT_EQ(hugging_face_name("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(hugging_face_name("output.weight"), "lm_head.weight");
  EXPECT_EQ(hugging_face_name("blk.12.attn_k.bias"), "model.layers.12.self_attn.k_proj.bias");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_norm.weight"),
            "model.layers.0.post_attention_layernorm.weight");
  for (const char* unknown : {"", "blk", "blk.", "blk.0.weight", "blk.x.attn_q.weight",
                              "blk.01.attn_q.weight", "blk.0.attn_q.scale", "blk.0.ssm_a.weight",
                              "blk.-1.attn_q.weight", "blk.0.attn_q", "token_embd"}) {
    EXPECT_EQ(hugging_face_name(unknown), std::nullopt) << unknown;
  }
}

TEST(Names, StripsWhatMultimodalFilesPutInFront) {
  EXPECT_EQ(text_model_name("language_model.model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(text_model_name("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(text_model_name("model.language_model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(text_model_name("model.norm.weight"), "model.norm.weight");
}

TEST(Names, QuotesOnlyWhatIsSafeToShow) {
  EXPECT_EQ(printable("a\nb\x7F"), "a?b?");
  EXPECT_EQ(printable("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(printable(std::string(5000, 'x')), std::string(100, 'x') + "...");
}

// All 65,536 halves against the definition.
TEST(Floats, WidenEveryHalfExactly) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const int exponent = (bits >> 10) & 31;
    const int mantissa = bits & 1023;
    const float got = half_to_float(static_cast<std::uint16_t>(bits));
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    float wanted = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                 : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    if (exponent == 31) wanted = INFINITY;
    if ((bits & 0x8000) != 0) wanted = -wanted;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted)) << bits;
  }
}

}  // namespace
}  // namespace bodega::model
