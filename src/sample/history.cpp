#include "sample/history.h"

#include <algorithm>

namespace bodega::sample {

History::History(std::span<const TokenId> prompt) : prompt_(prompt.begin(), prompt.end()) {
  std::sort(prompt_.begin(), prompt_.end());
  prompt_.erase(std::unique(prompt_.begin(), prompt_.end()), prompt_.end());
}

}  // namespace bodega::sample
