#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/structured_fields.h"
#include "api/tools.h"
#include "core/grammar_source.h"

namespace bodega::api {

// What a grammar has to know of the model.
struct CallSpelling {
  text::ToolFormat format = text::ToolFormat::kHermes;
  // The Lark atom of a marker: a control token where the vocabulary has it as one, else its text.
  std::function<std::string(std::string_view marker)> atom;
  std::string template_source;
};

// The grammar that tool_choice and strict tools demand, together with what else binds the answer;
// none where nothing binds. Throws Error(kInvalidRequest) where the two cannot be brought together.
std::optional<core::GrammarSource> tool_grammar(const Tools& tools, const CallSpelling& spelling,
                                                const std::optional<BoundAnswer>& answer);

}  // namespace bodega::api
