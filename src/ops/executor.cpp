#include "ops/executor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/cpu.h"
#include "base/errors.h"
#include "base/log.h"
#include "ops/reference/reference.h"
#include "ops/self_check.h"

namespace bodega::ops {
namespace {

namespace mx = mlx::core;

mx::Device prepared(mx::Device device) {
  mx::set_default_device(device);
  // MLX would round fp32 products on NVIDIA to ten bits; the twins promise fp32.
  setenv("MLX_ENABLE_TF32", "0", 0);
  return device;
}

std::unique_ptr<Backend> make_backend(Plan& plan, mx::Device device,
                                      const ExecutorOptions& options) {
  if (options.reference) return nullptr;
  if (device == mx::Device::cpu) {
    return make_cpu_backend(plan, options.threads > 0 ? options.threads : cpu_count(),
                            options.fast);
  }
  if (auto metal = make_metal_backend(plan)) return metal;
  return make_cuda_backend(plan);
}

// A step hands every slab through the graph, so a GPU, which commits memory at once anyway, has
// few: the Metal kernels bind four.
std::int64_t slab_bytes(mx::Device device, std::int64_t kv_bytes) {
  constexpr std::int64_t kMegabyte = 1 << 20;
  return device == mx::Device::cpu ? 64 * kMegabyte : std::max(256 * kMegabyte, kv_bytes / 3);
}

KvLayout only_group(const Plan& plan, const Backend* backend) {
  if (plan.kv_groups.size() != 1) {
    throw Error(ErrorKind::kBadModelFile, "A plan with more than one KV group cannot run yet.");
  }
  KvLayout layout = plan.kv_groups.front();
  layout.keys_by_dim = backend != nullptr && backend->keys_by_dim();
  return layout;
}

double relative_error(const mx::array& got, const mx::array& want) {
  const mx::array difference = mx::max(mx::abs(mx::subtract(got, want)));
  const mx::array size = mx::max(mx::abs(want));
  mx::array ratio = mx::divide(difference, mx::maximum(size, mx::array(1e-20F)));
  mx::eval(ratio);
  return ratio.item<float>();
}

std::vector<MatrixId> all_matrices(const Record& record) {
  if (const auto* r = std::get_if<Embed>(&record)) return {r->table};
  if (const auto* r = std::get_if<QuantLinear>(&record)) return {r->weight};
  if (const auto* r = std::get_if<LmHead>(&record)) return {r->weight};
  if (const auto* r = std::get_if<Moe>(&record)) {
    std::vector<MatrixId> all = r->gate_up;
    all.insert(all.end(), r->down.begin(), r->down.end());
    all.push_back(r->router);
    return all;
  }
  return {};
}

}  // namespace

Executor::Executor(Plan plan, mx::Device device, ExecutorOptions options)
    : plan_(std::move(plan)),
      device_(prepared(device)),
      backend_(make_backend(plan_, device, options)),
      pool_(only_group(plan_, backend_.get()), options.kv_bytes, device,
            slab_bytes(device, options.kv_bytes)) {
  for (const Record& record : plan_.records) {
    has_kernel_.push_back(backend_ != nullptr && backend_->supports(record));
  }
  if (options.self_check && backend_ != nullptr && backend_->wants_self_check()) {
    drop_wrong_kernels();
  }
  twin_weights_ = std::make_unique<reference::Weights>(plan_, device, backend_.get());
  load_weights();
}

// Layouts follow from who computes a record, so this comes before the weights load.
void Executor::drop_wrong_kernels() {
  const std::vector<std::string> wrong = self_check_all(plan_, device_, has_kernel_);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    if (wrong[i].empty()) continue;
    has_kernel_[i] = false;
    log_warn("a kernel failed its check at start: its record runs as stock MLX operations",
             {{"record", i}, {"operation", record_name(plan_.records[i])}, {"why", wrong[i]}});
  }
}

std::string Executor::kernels() const {
  if (backend_ == nullptr) return "stock MLX operations";
  return exact() ? backend_->name() : std::string(backend_->name()) + " and stock MLX operations";
}

bool Executor::exact() const {
  return std::all_of(has_kernel_.begin(), has_kernel_.end(), [](bool kernel) { return kernel; });
}

// A matrix is held once: in the kernels' layout when every record that reads it has a kernel.
void Executor::load_weights() {
  std::vector<bool> in_kernel_layout(plan_.matrices.size(), true);
  for (std::size_t i = 0; i < plan_.records.size(); ++i) {
    if (has_kernel_[i]) continue;
    for (MatrixId id : all_matrices(plan_.records[i])) in_kernel_layout[id] = false;
  }
  for (std::size_t i = 0; i < plan_.records.size(); ++i) {
    for (MatrixId id : all_matrices(plan_.records[i])) {
      if (!in_kernel_layout[id]) has_kernel_[i] = false;
    }
  }
  for (std::size_t id = 0; id < plan_.matrices.size(); ++id) {
    const bool kernel =
        std::any_of(plan_.records.begin(), plan_.records.end(), [&](const Record& r) {
          const auto ids = all_matrices(r);
          return has_kernel_[static_cast<std::size_t>(&r - plan_.records.data())] &&
                 std::count(ids.begin(), ids.end(), static_cast<MatrixId>(id)) > 0;
        });
    if (kernel) {
      backend_->load(static_cast<MatrixId>(id));
    } else {
      twin_weights_->load(static_cast<MatrixId>(id));
    }
    plan_.matrices[id].source.reset();
  }
}

mx::array Executor::step(const core::Batch& batch) {
  const auto shared = std::make_shared<const core::Batch>(batch);
  StepArrays arrays;
  arrays.slots.resize(plan_.slots.size());
  for (std::size_t begin = 0; begin < plan_.records.size();) {
    std::size_t end = begin;
    while (end < plan_.records.size() && has_kernel_[end]) ++end;
    if (end > begin) {
      backend_->run(begin, end, shared, pool_, arrays);
    } else {
      run_twin(end++, batch, arrays);
    }
    begin = end;
  }
  return *arrays.logits;
}

void Executor::run_twin(std::size_t index, const core::Batch& batch, StepArrays& arrays) {
  reference::run(plan_.records[index], {plan_, batch, *twin_weights_, pool_, arrays, device_});
}

std::vector<RecordCheck> Executor::check_records(const core::Batch& batch) {
  const auto shared = std::make_shared<const core::Batch>(batch);
  std::vector<RecordCheck> checks;
  StepArrays arrays;
  arrays.slots.resize(plan_.slots.size());
  for (std::size_t i = 0; i < plan_.records.size(); ++i) {
    if (!has_kernel_[i]) {
      run_twin(i, batch, arrays);
      continue;
    }
    StepArrays twin = arrays;
    backend_->run(i, i + 1, shared, pool_, arrays);
    run_twin(i, batch, twin);
    RecordCheck check{i, record_name(plan_.records[i]), 0};
    for (SlotId slot : slots_of(plan_.records[i], plan_).writes) {
      check.relative_error =
          std::max(check.relative_error, relative_error(*arrays.slots[slot], *twin.slots[slot]));
    }
    if (arrays.logits && twin.logits && arrays.logits->size() > 0) {
      check.relative_error =
          std::max(check.relative_error, relative_error(*arrays.logits, *twin.logits));
    }
    checks.push_back(check);
  }
  return checks;
}

}  // namespace bodega::ops
