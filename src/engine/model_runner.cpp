#include "engine/model_runner.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "engine/calibrate.h"

namespace bodega::engine {

namespace mx = mlx::core;

ModelRunner::ModelRunner(ops::Plan plan, mx::Device device, ops::ExecutorOptions options)
    : executor_(std::move(plan), device, options), pool_blocks_(executor_.pool().blocks()) {
  // Our own kernels write a slab where it lies; a twin may leave it for a new one.
  const bool one_memory = device == mx::Device::cpu || mx::metal::is_available();
  if (!executor_.exact() || !one_memory) return;
  mapped_ = device == mx::Device::cpu;
  for (mx::array& slab : executor_.pool().slabs()) {
    slabs_.push_back(reinterpret_cast<std::byte*>(slab.data<mx::float16_t>()));
  }
}

std::span<std::byte> ModelRunner::block_memory(int block) {
  if (slabs_.empty()) return {};
  const core::BlockRef ref = block_ref(block);
  const auto bytes = static_cast<std::size_t>(executor_.pool().layout().block_bytes());
  return {slabs_[static_cast<std::size_t>(ref.slab)] + static_cast<std::size_t>(ref.offset) * bytes,
          bytes};
}

ModelRunner::~ModelRunner() {
  mx::synchronize();  // a step in flight still uses the executor
  if (book_ && prices_) book_->save(*prices_);
}

void ModelRunner::learn_prices(PriceBook book) {
  book_.emplace(std::move(book));
  const cost::ModelWork work = work_of(executor_.plan());
  prices_.emplace(guessed_machine(), work);
  if (book_->load(*prices_)) return;
  prices_ = calibrate(*this, work);
  book_->save(*prices_);
}

void ModelRunner::release_memory(int block) {
  if (!mapped_) return;
  const std::span<std::byte> bytes = block_memory(block);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void ModelRunner::launch(const core::Batch& batch) {
  logits_ = executor_.to_host(executor_.step(batch));
  // The slabs too: a step that samples nothing still writes keys and values.
  std::vector<mx::array> wanted = executor_.pool().slabs();
  if (logits_->size() > 0) wanted.push_back(*logits_);
  mx::async_eval(std::move(wanted));
}

std::span<const float> ModelRunner::logits() {
  if (!logits_) return {};
  if (logits_->size() == 0) {
    for (mx::array& slab : executor_.pool().slabs()) slab.wait();
    return {};
  }
  logits_->wait();
  return {logits_->data<float>(), logits_->size()};
}

core::BlockRef ModelRunner::block_ref(int block) const { return executor_.pool().ref(block); }

}  // namespace bodega::engine
