#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/json.h"
#include "base/cpu.h"
#include "base/folders.h"
#include "base/memory.h"
#include "cli/machine_report.h"
#include "cli/verb.h"
#include "engine/disk/measure_disk.h"
#include "engine/probe.h"
#include "server/default_model.h"

namespace bodega::cli {
namespace {

struct DoctorFlags {
  std::string model;
  int threads = 0;
  bool json = false;
};

MachineReport examine(const DoctorFlags& flags) {
  MachineReport report;
  report.threads = flags.threads > 0 ? flags.threads : cpu_count();
  report.usable_cores = affinity_cpu_count();
  report.cgroup_cores = cgroup_cpu_limit();
  if (const auto memory = system_memory()) {
    report.memory_bytes = memory->total_bytes;
    report.free_bytes = memory->available_bytes;
  }
  report.bandwidth_gb_s = engine::measure_read_bandwidth(report.threads);
  const bool is_default = flags.model.empty() || server::is_default_model(flags.model);
  report.model = is_default ? server::default_model_path() : flags.model;
  const std::string cache = default_cache_folder();
  if (!cache.empty()) report.disk = engine::measure_disk(cache);
  report.probe = engine::probe_model(report.model, report.threads);
  return report;
}

}  // namespace

Run add_doctor(CLI::App& verb) {
  const auto flags = std::make_shared<DoctorFlags>();
  verb.add_option("MODEL", flags->model, "Model to measure with; none: the default")
      ->envname("BODEGA_MODEL");
  verb.add_option("--threads", flags->threads, "CPU threads, 0 = automatic")
      ->envname("BODEGA_THREADS");
  verb.add_flag("--json", flags->json, "Print JSON")->envname("BODEGA_JSON");
  return [flags] {
    const MachineReport report = examine(*flags);
    fmt::print("{}", flags->json ? api::to_text(to_json(report)) + "\n" : to_text(report));
    return report.healthy() ? 0 : 1;
  };
}

}  // namespace bodega::cli
