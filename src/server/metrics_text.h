#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/worker_reports.h"

namespace bodega::server {

// Joins Prometheus texts of several processes: a family's lines have to stand together, under one
// HELP and one TYPE, so the samples of a family seen before are moved up to it.
std::string merge_metrics(const std::vector<std::string>& texts);

// What only the front knows: which workers are up, and how often each was restarted.
std::string front_metrics(const std::vector<WorkerReport>& reports);

// A label's value, as the text format wants it.
std::string escape_label(std::string_view text);

}  // namespace bodega::server
