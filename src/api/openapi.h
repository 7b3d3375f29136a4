#pragma once

#include "api/json.h"

namespace bodega::api {

// The description of this server's routes and of what their bodies may hold, for GET /openapi.json:
// the ranges of plain fields come from the table that checks them.
json::object openapi_document();

}  // namespace bodega::api
