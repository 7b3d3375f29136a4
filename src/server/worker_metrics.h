#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"

namespace bodega::server {

// The engine's numbers in Prometheus' text exposition format 0.0.4, labelled with the model's id.
std::string metrics_text(std::string_view model_id, const engine::EngineStats& stats);

}  // namespace bodega::server
