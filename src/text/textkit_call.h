#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "core/request.h"
#include "textkit.h"

namespace bodega::text {

// Private to this folder: values across the C boundary of rust/textkit.

inline textkit_view view_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Takes over what textkit returned and frees it.
std::string take(textkit_text text);
std::vector<core::TokenId> take(textkit_ids ids);

// Calls `function(args..., &out, &error)` and returns `out`. Throws Error: kBadModelFile,
// kInvalidRequest or kInternal.
[[noreturn]] void throw_failure(textkit_status status, textkit_text error);

template <typename Out, typename Function, typename... Args>
Out call(Function function, Args... args) {
  Out out{};
  textkit_text error{};
  const textkit_status status = function(args..., &out, &error);
  if (status != 0) throw_failure(status, error);
  return out;
}

}  // namespace bodega::text
