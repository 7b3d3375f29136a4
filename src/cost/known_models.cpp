#include "cost/known_models.h"

#include <array>

#include "core/batch.h"

namespace bodega::cost {
namespace {

struct Shape {
  const char* name;
  double layer_parameters;
  double head_parameters;
  int layers;
  int heads;
  int kv_heads;
  int head_dim;
};

constexpr double kBytesAWeight = 4.5 / 8;

KnownModel work_of(const Shape& shape) {
  ModelWork work;
  work.weight_bytes = static_cast<std::int64_t>(shape.layer_parameters * kBytesAWeight);
  work.flops_per_row = static_cast<std::int64_t>(2 * shape.layer_parameters);
  work.head_bytes = static_cast<std::int64_t>(shape.head_parameters * kBytesAWeight);
  work.flops_per_sampled_row = static_cast<std::int64_t>(2 * shape.head_parameters);
  work.kv_bytes_per_token = std::int64_t{2} * 2 * shape.layers * shape.kv_heads * shape.head_dim;
  work.flops_per_kv_token = std::int64_t{4} * shape.layers * shape.heads * shape.head_dim;
  work.block_bytes = work.kv_bytes_per_token * core::kBlockTokens;
  return {shape.name, work};
}

}  // namespace

std::span<const KnownModel> known_models() {
  static const std::array<KnownModel, 4> models = {
      work_of({"135m", 106e6, 28e6, 30, 9, 3, 64}),
      work_of({"8b", 7.0e9, 0.53e9, 32, 32, 8, 128}),
      work_of({"32b", 31.2e9, 0.78e9, 64, 64, 8, 128}),
      work_of({"70b", 68.5e9, 1.05e9, 80, 64, 8, 128}),
  };
  return models;
}

std::optional<ModelWork> find_model(std::string_view name) {
  for (const KnownModel& model : known_models()) {
    if (model.name == name) return model.work;
  }
  return std::nullopt;
}

}  // namespace bodega::cost
