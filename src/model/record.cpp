#include "model/record.h"

#include <string_view>

#include "base/errors.h"
#include "model/llama.h"

namespace bodega::model {
namespace {

using Record = ops::Plan (*)(const Checkpoint&, int);

struct Architecture {
  std::string_view name;
  Record record;
};

// A new architecture is one file and one line here: docs/adding-a-model.md.
constexpr Architecture kArchitectures[] = {
    {"llama", record_llama},
    {"mistral", record_llama},
    {"qwen2", record_llama},
    {"qwen3", record_llama},
};

}  // namespace

ops::Plan record_plan(const Checkpoint& checkpoint, int context_length) {
  for (const Architecture& a : kArchitectures) {
    if (a.name != checkpoint.config().architecture) continue;
    ops::Plan plan = a.record(checkpoint, context_length);
    checkpoint.check_all_used();
    return plan;
  }
  throw Error(ErrorKind::kBadModelFile, "The architecture '" + checkpoint.config().architecture +
                                            "' is not supported: see docs/adding-a-model.md.");
}

}  // namespace bodega::model
