#pragma once

#include <istream>
#include <memory>

#include "cli/simulate/workload.h"

namespace bodega::cli {

// A trace of real requests, a JSON object a line, in order of arrival:
//   {"arrival": 12.5, "blocks": [17, 18, 93], "output": 120}
// `arrival` in seconds; `blocks` names the prompt's content piece by piece, equal ids for equal
// text behind equal text, `block_tokens` tokens each; `prompt` (tokens, optional) cuts the last
// one short. Throws Error(kConfig) with the number of the line.
SimSource read_trace(std::shared_ptr<std::istream> lines, int block_tokens);

}  // namespace bodega::cli
