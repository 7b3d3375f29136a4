#include "server/metrics_text.h"

#include <algorithm>
#include <string_view>

namespace bodega::server {
namespace {

struct Family {
  std::string name;
  std::string head;  // HELP and TYPE
  std::string samples;
};

Family& family_of(std::vector<Family>& families, std::string_view name) {
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const Family& family) { return family.name == name; });
  if (found != families.end()) return *found;
  families.push_back({std::string(name), "", ""});
  return families.back();
}

// "# TYPE name counter" -> "name"
std::string_view name_in_comment(std::string_view line) {
  line.remove_prefix(std::min(line.find(' ', 2) + 1, line.size()));
  return line.substr(0, line.find(' '));
}

void add_text(std::vector<Family>& families, std::string_view text) {
  std::string current;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    // Samples follow their comments; a histogram's have other names than the family.
    const bool comment = line.starts_with("# ");
    if (comment) current = name_in_comment(line);
    Family& family = family_of(families, current);
    std::string& part = comment ? family.head : family.samples;
    if (comment && part.find(line) != std::string::npos) continue;
    part += line;
    part += '\n';
  }
}

}  // namespace

std::string escape_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string merge_metrics(const std::vector<std::string>& texts) {
  std::vector<Family> families;
  for (const std::string& text : texts) add_text(families, text);
  std::string out;
  for (const Family& family : families) out += family.head + family.samples;
  return out;
}

std::string front_metrics(const std::vector<WorkerReport>& reports) {
  std::string up =
      "# HELP bodega_worker_up 1 when the model's worker answers.\n"
      "# TYPE bodega_worker_up gauge\n";
  std::string restarts =
      "# HELP bodega_worker_restarts_total Times the worker died and was started again.\n"
      "# TYPE bodega_worker_restarts_total counter\n";
  for (const WorkerReport& report : reports) {
    const std::string label = "{model=\"" + escape_label(report.id) + "\"} ";
    up += "bodega_worker_up" + label + (report.status == 200 ? "1\n" : "0\n");
    restarts += "bodega_worker_restarts_total" + label + std::to_string(report.restarts) + "\n";
  }
  return up + restarts;
}

}  // namespace bodega::server
