#pragma once

#include "api/json.h"

namespace bodega::api {

// For chat templates that know no tools: lists them in the system message, in the words that the
// hermes parser reads back.
void list_tools(json::array& messages, const json::array& tools);

// For chat templates that know no calls: writes those of the history, and what the tools answered,
// as text, so that no turn is lost.
void spell_out_calls(json::array& messages);

}  // namespace bodega::api
