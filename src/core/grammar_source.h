#pragma once

#include <cstdint>
#include <string>

namespace bodega::core {

enum class GrammarKind : std::int32_t { kJsonSchema = 0, kRegex = 1, kLark = 2 };

// A grammar as a request names it: the text of a JSON schema, of a regular expression that the
// whole answer matches, or of a Lark grammar (llguidance's dialect).
struct GrammarSource {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
};

}  // namespace bodega::core
