#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "core/grammar_source.h"

namespace bodega::api {

struct ModelLimits;

// What a request binds its answer to.
struct BoundAnswer {
  core::GrammarSource source;
  std::string param;                 // the field that holds it, for errors of the compiler
  std::vector<BoundAnswer> parts{};  // what it is made of, where that is to be blamed
};

BoundAnswer bound_to(core::GrammarKind kind, std::string text, std::string param);

// Reads response_format, structured_outputs and the guided_* fields: at most one of them may bind.
std::optional<BoundAnswer> read_bound_answer(Fields& fields, const ModelLimits& limits,
                                             std::vector<std::string>& warnings);

// A string as Lark and JSON quote it.
std::string quoted(std::string_view text);

}  // namespace bodega::api
