#pragma once

#include <string_view>

namespace bodega::server {

// The value of `max_gap`: a multiple of a plain decode step, or a time. Exactly one is above 0.
struct MaxGap {
  double factor = 0;
  double seconds = 0;
};

// "2.2x" or "2.2" (1 to 1000), "80ms" or "0.5s" (1 ms to 1000 s). Throws Error(kConfig).
MaxGap parse_max_gap(std::string_view text);

}  // namespace bodega::server
