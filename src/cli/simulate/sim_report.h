#pragma once

#include <boost/json.hpp>
#include <string>

#include "cli/simulate/sim_machine.h"

namespace bodega::cli {

boost::json::object to_json(const SimStats& stats, int machines);
std::string to_text(const SimStats& stats, int machines);

}  // namespace bodega::cli
