#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/config_json.h"
#include "ops/weight_source.h"

namespace bodega::model {

// What config.json's "quantization" (MLX) says: one format for all, and exceptions by module.
class Quantization {
 public:
  // Throws for other schemes (GPTQ, AWQ, ...), modes, widths and group sizes, by name.
  static Quantization read(const JsonFields& config);

  bool declared() const { return default_.has_value(); }
  // The format that the module's weight should have: nothing = not quantized. Module names are
  // compared as text_model_name() has them, so files written before or after renaming both match.
  std::optional<ops::WeightFormat> format_of(const std::string& module) const;

 private:
  std::optional<ops::WeightFormat> default_;
  std::map<std::string, std::optional<ops::WeightFormat>> exceptions_;
};

}  // namespace bodega::model
