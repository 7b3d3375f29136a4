#include "model/checkpoint_floats.h"

namespace bodega::model {

void widen(ops::FloatType type, const std::byte* in, std::size_t count, float* out) {
  switch (type) {
    case ops::FloatType::kF32:
      std::memcpy(out, in, count * sizeof(float));
      return;
    case ops::FloatType::kF16:
      for (std::size_t i = 0; i < count; ++i) out[i] = half_to_float(load_u16(in + 2 * i));
      return;
    case ops::FloatType::kBF16:
      for (std::size_t i = 0; i < count; ++i) out[i] = bfloat_to_float(load_u16(in + 2 * i));
      return;
  }
}

}  // namespace bodega::model
