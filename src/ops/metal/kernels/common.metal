#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;  // banned-ok: how every Metal source begins

// Safe math still lets the compiler fuse a product and a sum of one statement; fma is written out where
// it is meant, so that every compiled variant rounds alike.
#pragma METAL fp contract(off)

// A simdgroup's 8x8 matrix lies two neighbouring elements a lane.
inline int fragment_row_of(uint lane) { return int(((lane / 4) & 4) + (lane / 2) % 4); }
inline int fragment_column_of(uint lane) { return int(((lane / 4) & 2) * 2 + lane % 2 * 2); }

inline simdgroup_float8x8 zero_matrix() { return make_filled_simdgroup_matrix<float, 8>(0.0f); }

template <typename M, typename T>
inline void set_elements(thread M& matrix, T first, T second) {
  matrix.thread_elements()[0] = first;
  matrix.thread_elements()[1] = second;
}

#ifdef BODEGA_CODES
// The number that a code stands for, exact in half: itself; or a small float, whose bits are those of
// a half of another exponent bias (2^14 or 2^8 too small: the scales make up for it).
inline half code_value(uint code) {
#if BODEGA_CODES == 0
  return half(code & ((1u << BODEGA_BITS) - 1u));
#elif BODEGA_BITS == 4
  return as_type<half>(ushort((code & 7u) << 9 | (code & 8u) << 12));
#else
  return as_type<half>(ushort((code & 127u) << 7 | (code & 128u) << 8));
#endif
}
#endif

// Sum over the simdgroup in one order on every device; simd_sum promises none.
inline float ordered_sum(float x) {
  x += simd_shuffle_xor(x, 1);
  x += simd_shuffle_xor(x, 2);
  x += simd_shuffle_xor(x, 4);
  x += simd_shuffle_xor(x, 8);
  x += simd_shuffle_xor(x, 16);
  return x;
}
