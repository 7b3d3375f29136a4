#include "model/config_quantization.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/names.h"

namespace bodega::model {
namespace {

using ops::WeightFormat;
using Kind = WeightFormat::Kind;

struct Mode {
  const char* name;
  Kind kind;
  int bits;  // 0 = any of the affine widths
  int group_size;
};

constexpr std::array<Mode, 4> kModes = {{
    {"affine", Kind::kAffine, 0, 0},
    {"mxfp4", Kind::kMxfp4, 4, 32},
    {"mxfp8", Kind::kMxfp8, 8, 32},
    {"nvfp4", Kind::kNvfp4, 4, 16},
}};

void check_affine(const JsonFields& fields, const WeightFormat& format) {
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  if (std::ranges::count(kBits, format.bits) == 0) {
    fields.fail("bits",
                "is " + std::to_string(format.bits) + "; 2, 3, 4, 5, 6 and 8 are supported.");
  }
  if (std::ranges::count(kGroups, format.group_size) == 0) {
    fields.fail("group_size",
                "is " + std::to_string(format.group_size) + "; 32, 64 and 128 are supported.");
  }
}

// `defaults`: what an exception need not repeat (mlx.nn.quantize fills in the same way).
WeightFormat read_format(const JsonFields& fields, const WeightFormat* defaults) {
  const char* inherited = kModes.front().name;
  for (const Mode& candidate : kModes) {
    if (defaults != nullptr && defaults->kind == candidate.kind) inherited = candidate.name;
  }
  const std::string name = fields.text("mode").value_or(inherited);
  const Mode* mode = nullptr;
  for (const Mode& candidate : kModes) {
    if (name == candidate.name) mode = &candidate;
  }
  if (mode == nullptr) fields.fail("mode", "is '" + printable(name) + "', which is not supported.");
  const bool inherits = defaults != nullptr && defaults->kind == mode->kind;
  WeightFormat format{.kind = mode->kind};
  const int any_bits = mode->bits != 0 ? mode->bits : (inherits ? defaults->bits : 4);
  const int any_group =
      mode->group_size != 0 ? mode->group_size : (inherits ? defaults->group_size : 64);
  format.bits = fields.size_or("bits", any_bits);
  format.group_size = fields.size_or("group_size", any_group);
  if (mode->bits == 0) {
    check_affine(fields, format);
  } else if (format.bits != mode->bits || format.group_size != mode->group_size) {
    fields.fail("mode", std::string(mode->name) + " has " + std::to_string(mode->bits) +
                            " bits in groups of " + std::to_string(mode->group_size) + " only.");
  }
  return format;
}

std::string module_key(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  const std::string text = text_model_name(name);
  return text.starts_with(kModel) ? text.substr(kModel.size()) : text;
}

bool is_own_key(std::string_view key) {
  return key == "bits" || key == "group_size" || key == "mode";
}

}  // namespace

Quantization Quantization::read(const JsonFields& config) {
  Quantization result;
  auto fields = config.object("quantization");
  if (!fields) fields = config.object("quantization_config");
  if (!fields) return result;
  if (const auto method = fields->text("quant_method")) {
    fields->fail("quant_method", "is '" + printable(*method) + "', which is not supported.");
  }
  const WeightFormat all = read_format(*fields, nullptr);
  result.default_ = all;
  for (const auto& [raw_key, value] : fields->json()) {
    const std::string key(raw_key);
    if (is_own_key(key) || value.is_null()) continue;
    std::optional<WeightFormat> format;
    if (value.is_object()) {
      format = read_format(JsonFields(value, fields->file(), "quantization." + key + "."), &all);
    } else if (!value.is_bool()) {
      fields->fail(key, "is neither an object nor true or false.");
    } else if (value.get_bool()) {
      format = all;
    }
    if (!result.exceptions_.emplace(module_key(key), format).second) {
      fields->fail(key, "is a second exception for the same module.");
    }
  }
  return result;
}

std::optional<WeightFormat> Quantization::format_of(const std::string& module) const {
  const auto it = exceptions_.find(module_key(module));
  return it == exceptions_.end() ? default_ : it->second;
}

}  // namespace bodega::model
