#pragma once

#include "ops/cpu/vec_avx2.h"

// AVX2 with the 256-bit VNNI of processors without AVX-512: products of bytes add up in one
// instruction, so activations are split into bytes. Included only by kernels_avxvnni.cpp.
namespace {

struct VecAvxVnni : VecAvx2 {
  static constexpr bool kQuads = true;
  static constexpr Activations fast(int) { return Activations::kInt8; }
  static I dot_quad(I acc, I codes, std::int32_t quad) {
    return _mm256_dpbusd_avx_epi32(acc, codes, _mm256_set1_epi32(quad));
  }
};

}  // namespace
