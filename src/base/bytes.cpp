#include "base/bytes.h"

#include <cctype>
#include <cstdio>
#include <iterator>

#include "base/errors.h"

namespace bodega {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 63;

[[noreturn]] void refuse(std::string_view text) {
  throw Error(ErrorKind::kConfig,
              "\"" + std::string(text) + "\" is no size; write for instance 512MiB, 4G or 65536.");
}

// Powers of 1024 that a suffix stands for: "", "b", "k", "kb", "kib", ... in lower case.
int power_of_suffix(std::string_view suffix, std::string_view whole) {
  if (suffix.empty() || suffix == "b") return 0;
  constexpr std::string_view kLetters = "kmgt";
  const auto letter = kLetters.find(suffix[0]);
  const std::string_view rest = suffix.substr(1);
  if (letter == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) {
    refuse(whole);
  }
  return static_cast<int>(letter) + 1;
}

constexpr int kMaxFractionDigits = 6;  // 10^6 times 2^40 still fits 64 bits

// Digits at the front of `text`, at most `max_digits`; moves `text` past them.
struct Digits {
  std::uint64_t value = 0;
  std::uint64_t scale = 1;  // 10^count
  int count = 0;
};

Digits take_digits(std::string_view& text, int max_digits, std::string_view whole) {
  Digits digits;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    if (++digits.count > max_digits) refuse(whole);
    digits.value = digits.value * 10 + static_cast<unsigned>(text[0] - '0');
    digits.scale *= 10;
    text.remove_prefix(1);
  }
  return digits;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  std::string lower;
  for (const char c : text) {
    if (c != ' ') lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::string_view rest = lower;
  const Digits whole = take_digits(rest, 19, text);
  Digits fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest, kMaxFractionDigits, text);
  }
  if (whole.count + fraction.count == 0) refuse(text);
  const int shift = 10 * power_of_suffix(rest, text);
  if (whole.value > (kMaxBytes >> shift)) refuse(text);
  const std::uint64_t bytes = (whole.value << shift) + (fraction.value << shift) / fraction.scale;
  if (bytes > kMaxBytes) refuse(text);
  return bytes;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < kKiB) return std::to_string(bytes) + " B";
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  // 1023.95 would print as "1024.0": move on to the next unit first.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", value, std::string(kUnits[unit]).c_str());
  return text;
}

}  // namespace bodega
