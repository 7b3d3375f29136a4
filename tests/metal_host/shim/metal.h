#pragma once

#include <bit>
#include <cmath>
#include <type_traits>

#include "shim/simt.h"

// As much of the Metal shading language as the kernels of src/ops/metal use, in C++. translate.py
// turns address spaces into Ptr and attributes into nothing. half converts only when told to, so
// that no kernel rounds where it does not say so.
namespace metal_host::msl {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

// --- half ----------------------------------------------------------------------------------------

class half {
 public:
  half() = default;
  explicit half(float x) : bits_(from_float(x)) {}
  explicit half(int x) : half(static_cast<float>(x)) {}
  explicit half(uint x) : half(static_cast<float>(x)) {}
  explicit operator float() const { return to_float(bits_); }
  std::uint16_t bits() const { return bits_; }

 private:
  static float to_float(std::uint16_t h) {
    const std::uint32_t sign = (h & 0x8000U) << 16U;
    const std::uint32_t exponent = (h >> 10U) & 31U;
    const std::uint32_t mantissa = h & 1023U;
    if (exponent == 31U) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
    if (exponent == 0) {
      const float value = std::ldexp(static_cast<float>(mantissa), -24);
      return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
  }
  static std::uint16_t from_float(float x) {  // to nearest even
    std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 16U) & 0x8000U;
    bits &= 0x7FFFFFFFU;
    std::uint32_t half_bits;
    if (bits > 0x7F800000U) {
      half_bits = 0x7E00U;
    } else if (bits >= 0x477FF000U) {
      half_bits = 0x7C00U;
    } else if (bits < 0x38800000U) {
      half_bits = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(x), 24)));
    } else {
      half_bits = (bits - 0x38000000U + 0xFFFU + ((bits >> 13U) & 1U)) >> 13U;
    }
    return static_cast<std::uint16_t>(sign | half_bits);
  }
  std::uint16_t bits_;
};

// --- vectors -------------------------------------------------------------------------------------

template <class T, int N>
struct vec;
template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  T& operator[](int i) { return i == 0 ? x : y; }
  const T& operator[](int i) const { return i == 0 ? x : y; }
};
template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};
using half2 = vec<half, 2>;
using half4 = vec<half, 4>;
using float2 = vec<float, 2>;
using float4 = vec<float, 4>;
using uint2 = vec<uint, 2>;
using uint4 = vec<uint, 4>;
using uint3 = uint3_plain;

// --- functions -----------------------------------------------------------------------------------

template <class T, class From>
  requires(sizeof(T) == sizeof(From))
T as_type(From x) {
  return std::bit_cast<T>(x);
}
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline uint min(uint a, uint b) { return a < b ? a : b; }
inline uint max(uint a, uint b) { return a > b ? a : b; }
namespace precise {
inline float exp(float x) { return std::exp(x); }
inline float tanh(float x) { return std::tanh(x); }
inline float cos(float x) { return std::cos(x); }
inline float sin(float x) { return std::sin(x); }
inline float sqrt(float x) { return std::sqrt(x); }
}  // namespace precise

// --- memory --------------------------------------------------------------------------------------

// What a writable element gives: reads and writes are checked.
template <class T>
class Ref {
 public:
  Ref(T* at, Region* region) : at_(at), region_(region) {}
  operator T() const {
    region_->check_read(at_, sizeof(T), alignof(T));
    return *at_;
  }
  const Ref& operator=(T value) const {
    region_->check_write(at_, sizeof(T), alignof(T));
    *at_ = value;
    return *this;
  }
  const Ref& operator=(const Ref& other) const { return *this = static_cast<T>(other); }
  const Ref& operator+=(T value) const { return *this = static_cast<T>(*this) + value; }

 private:
  T* at_;
  Region* region_;
};

template <class T>
class Ptr {
 public:
  using Plain = std::remove_const_t<T>;
  Ptr(T* at, Region* region) : at_(at), region_(region) {}
  template <class U>
    requires std::is_same_v<const U, T>
  Ptr(const Ptr<U>& other) : at_(other.raw()), region_(other.region()) {}
  template <class U>  // a cast to another element type
    requires(!std::is_same_v<const U, T>)
  explicit Ptr(const Ptr<U>& other)
      : at_(reinterpret_cast<T*>(const_cast<std::remove_const_t<U>*>(other.raw()))),
        region_(other.region()) {
    static_assert(std::is_const_v<T> || !std::is_const_v<U>, "a cast may not make memory writable");
  }

  decltype(auto) operator[](std::ptrdiff_t i) const {
    if constexpr (std::is_const_v<T>) {
      region_->check_read(at_ + i, sizeof(T), alignof(T));
      return static_cast<Plain>(at_[i]);
    } else {
      return Ref<T>(at_ + i, region_);
    }
  }
  decltype(auto) operator*() const { return (*this)[0]; }
  Ptr operator+(std::ptrdiff_t i) const { return {at_ + i, region_}; }
  Ptr& operator+=(std::ptrdiff_t i) {
    at_ += i;
    return *this;
  }
  T* raw() const { return at_; }
  Region* region() const { return region_; }

 private:
  T* at_;
  Region* region_;
};

template <class T>
Ptr<T> threadgroup_array(std::size_t count, const char* name) {
  void* data = nullptr;
  Region* region = declare_threadgroup(count * sizeof(T), name, &data);
  return {static_cast<T*>(data), region};
}

// --- threads -------------------------------------------------------------------------------------

enum class mem_flags { mem_none, mem_device, mem_threadgroup };
inline void threadgroup_barrier(mem_flags, Location where = Location::current()) {
  group_barrier(where);
}
inline void simdgroup_barrier(mem_flags, Location where = Location::current()) {
  simd_barrier(where);
}

template <class T>
T lane_value(const Exchange& all, int lane) {
  T value;
  std::memcpy(&value, all.data + lane * Exchange::kStride, sizeof value);
  return value;
}
template <class T>
T simd_shuffle_xor(T value, ushort mask, Location where = Location::current()) {
  return lane_value<T>(exchange(&value, sizeof value, where), current_lane() ^ mask);
}
template <class T>
T simd_shuffle(T value, ushort lane, Location where = Location::current()) {
  return lane_value<T>(exchange(&value, sizeof value, where), lane);
}
// The order of Apple's sum is its own; kernels that promise bits use shuffles.
inline float simd_sum(float value, Location where = Location::current()) {
  const Exchange all = exchange(&value, sizeof value, where);
  float sum = 0;
  for (int lane = 0; lane < kSimdWidth; ++lane) sum += lane_value<float>(all, lane);
  return sum;
}
inline float simd_max(float value, Location where = Location::current()) {
  const Exchange all = exchange(&value, sizeof value, where);
  float top = lane_value<float>(all, 0);
  for (int lane = 1; lane < kSimdWidth; ++lane) top = max(top, lane_value<float>(all, lane));
  return top;
}

// --- simdgroup_matrix ----------------------------------------------------------------------------

// Row and first column of a lane's two elements, as in MLX's steel kernels.
inline int fragment_row(int lane) { return ((lane / 4) & 4) + (lane / 2) % 4; }
inline int fragment_column(int lane) { return ((lane / 4) & 2) * 2 + lane % 2 * 2; }

template <class T, int Rows, int Columns>
class simdgroup_matrix {
  static_assert(Rows == 8 && Columns == 8);

 public:
  // Apple's type only promises elements one by one.
  struct Elements {
    vec<T, 2>& both;
    T& operator[](int i) const { return both[i]; }
  };
  simdgroup_matrix() = default;
  Elements thread_elements() { return {elements_}; }
  const vec<T, 2>& elements() const { return elements_; }

 private:
  vec<T, 2> elements_;
};
template <class T, int Rows>
simdgroup_matrix<T, Rows, Rows> make_filled_simdgroup_matrix(T x) {
  simdgroup_matrix<T, Rows, Rows> matrix;
  for (int e = 0; e < 2; ++e) matrix.thread_elements()[e] = x;
  return matrix;
}
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;

// The lane that holds elements (row, column & ~1) and the one beside it.
inline int fragment_lane(int row, int column) {
  return (row / 4) * 16 + (column / 4) * 8 + row % 4 * 2 + column / 2 % 2;
}

// d = a * b + c: products and sums in fp32, k ascending (Apple documents no order).
template <class A, class B>
void simdgroup_multiply_accumulate(simdgroup_float8x8& d, const simdgroup_matrix<A, 8, 8>& a,
                                   const simdgroup_matrix<B, 8, 8>& b, const simdgroup_float8x8& c,
                                   Location where = Location::current()) {
  struct Both {
    vec<A, 2> a;
    vec<B, 2> b;
  };
  const Both own{a.elements(), b.elements()};
  const Exchange all = exchange(&own, sizeof own, where);
  const int row = fragment_row(current_lane());
  const int column = fragment_column(current_lane());
  float2 sum = c.elements();
  for (int k = 0; k < 8; ++k) {
    const auto left = static_cast<float>(lane_value<Both>(all, fragment_lane(row, k)).a[k % 2]);
    const vec<B, 2> right = lane_value<Both>(all, fragment_lane(k, column)).b;
    sum.x = fma(left, static_cast<float>(right.x), sum.x);
    sum.y = fma(left, static_cast<float>(right.y), sum.y);
  }
  d.thread_elements()[0] = sum.x;
  d.thread_elements()[1] = sum.y;
}

}  // namespace metal_host::msl
