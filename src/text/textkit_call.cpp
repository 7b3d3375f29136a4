#include "text/textkit_call.h"

namespace bodega::text {

std::string take(textkit_text text) {
  std::string out(reinterpret_cast<const char*>(text.data), text.size);
  textkit_text_free(text);
  return out;
}

std::vector<core::TokenId> take(textkit_ids ids) {
  std::vector<core::TokenId> out(ids.data, ids.data + ids.size);
  textkit_ids_free(ids);
  return out;
}

void throw_failure(textkit_status status, textkit_text error) {
  const std::string message = take(error);
  switch (status) {
    case 1:
      throw Error(ErrorKind::kBadModelFile, message);
    case 2:
      throw Error(ErrorKind::kInvalidRequest, message);
    default:
      throw Error(ErrorKind::kInternal, message);
  }
}

}  // namespace bodega::text
