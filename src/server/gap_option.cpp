#include "server/gap_option.h"

#include <cstdlib>
#include <string>

#include "base/errors.h"

namespace bodega::server {

MaxGap parse_max_gap(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  const std::string unit(end);
  const bool digit_first = !copy.empty() && copy[0] >= '0' && copy[0] <= '9';
  MaxGap gap;
  if (unit == "ms") gap.seconds = number / 1000;
  if (unit == "s") gap.seconds = number;
  if (unit == "x" || unit.empty()) gap.factor = number;
  const bool time = gap.seconds >= 0.001 && gap.seconds <= 1000;
  const bool times = gap.factor >= 1 && gap.factor <= 1000;
  if (digit_first && (time || times)) return gap;
  throw Error(ErrorKind::kConfig,
              "max_gap must be a multiple of a plain step such as 2.2x, or a time such as 80ms, "
              "not \"" +
                  copy + "\".",
              "max_gap");
}

}  // namespace bodega::server
