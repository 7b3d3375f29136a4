#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost/work.h"

namespace bodega::cost {

// Models by size, for `simulate` only: counted from their shapes, at 4.5 bits a weight.
struct KnownModel {
  std::string name;
  ModelWork work;
};
std::span<const KnownModel> known_models();
std::optional<ModelWork> find_model(std::string_view name);

}  // namespace bodega::cost
