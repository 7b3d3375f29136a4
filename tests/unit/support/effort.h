#pragma once

namespace bodega {

// How many rounds a long random test makes: all of them in a release build, a twentieth where
// asserts and sanitizers make each round many times slower.
constexpr int effort(int rounds) {
#ifdef NDEBUG
  constexpr bool kSlow = false;
#else
  constexpr bool kSlow = true;
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  constexpr bool kSanitized = true;
#else
  constexpr bool kSanitized = false;
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kSanitized = true;
#else
  constexpr bool kSanitized = false;
#endif
  return kSlow || kSanitized ? rounds / 20 : rounds;
}

}  // namespace bodega
