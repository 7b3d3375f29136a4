#include "ops/metal/step.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bodega::ops::metal {

std::string Kernel::library() const {
  std::string name = "bodega_" + file;
  for (const auto& [macro, value] : macros) name += "_" + value;
  return name;
}

StepState::StepState(Gpu& given_gpu, const Plan& given_plan, bool given_wide_inputs)
    : gpu(given_gpu),
      plan(given_plan),
      wide_inputs(given_wide_inputs),
      matrices(given_plan.matrices.size()),
      slot_memory_(given_plan.slots.size()) {
  for (const NamedVector& v : plan.vectors) {
    const std::size_t bytes = v.values.size() * sizeof(float);
    vectors.push_back(gpu.allocate(std::max<std::size_t>(16, bytes)));
    std::memcpy(vectors.back()->data(), v.values.data(), bytes);
  }
  vectors.push_back(gpu.allocate(16));  // for arguments that are not used
}

void StepState::load(MatrixId id, bool pair, ThreadPool& pool) {
  const WeightSource& source = *plan.matrices[id].source;
  LoadedMatrix& w = matrices[id];
  w.layout = layout_for(source, pair);
  w.memory = gpu.allocate(w.layout.bytes());
  struct Context {
    const WeightSource* source;
    const PackedLayout* layout;
    std::uint8_t* to;
  } context{&source, &w.layout, w.memory->data()};
  const ThreadPool::Phase phase{w.layout.blocks(),
                                [](const void* c, int block, int) {
                                  const auto& x = *static_cast<const Context*>(c);
                                  pack_block(*x.source, *x.layout, block,
                                             x.to + x.layout->block_bytes() * block);
                                },
                                &context};
  pool.run({&phase, 1});
}

// Integers of a step one after the other, each list aligned.
class StepState::Tables {
 public:
  template <typename T>
  std::size_t add(const std::vector<T>& values) {
    const std::size_t offset = bytes_.size();
    const std::size_t size = values.size() * sizeof(T);
    bytes_.resize(offset + (size + 15) / 16 * 16 + 16);
    if (size > 0) std::memcpy(bytes_.data() + offset, values.data(), size);
    return offset;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

void StepState::grow(std::unique_ptr<Memory>& memory, std::size_t bytes) {
  if (memory != nullptr && memory->bytes() >= bytes) return;
  if (memory != nullptr) gpu.retire(std::move(memory));
  memory = gpu.allocate(std::max<std::size_t>(bytes, 256));
}

void StepState::reserve_inputs(std::size_t begin, std::size_t end) {
  std::size_t cols = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const Record& record = plan.records[i];
    if (const auto* r = std::get_if<QuantLinear>(&record)) {
      cols = std::max(cols, static_cast<std::size_t>(plan.matrices[r->weight].cols));
    }
    if (const auto* r = std::get_if<LmHead>(&record)) {
      cols = std::max(cols, static_cast<std::size_t>(plan.matrices[r->weight].cols));
    }
  }
  const std::size_t padded = (static_cast<std::size_t>(std::max(rows, sampled)) + 7) / 8 * 8;
  grow(prepared, padded * cols * (wide_inputs ? sizeof(float) : sizeof(std::uint16_t)));
  grow(sums, padded * (cols / 32) * sizeof(float));  // the smallest group
}

void StepState::write_tables(const core::Batch& batch, std::size_t begin, std::size_t end) {
  Tables all;
  tokens = all.add(batch.tokens);
  sampled_rows = all.add(batch.sampled_rows);
  places = all.add(row_places(batch));
  blocks = all.add(block_places(batch));
  attention.clear();
  std::size_t values = 0;
  std::size_t states = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto* r = std::get_if<PagedAttention>(&plan.records[i]);
    if (r == nullptr) continue;
    const std::tuple key{r->shape.heads, r->shape.kv_heads, r->window};
    if (attention.contains(key)) continue;
    const AttentionWork work = attention_work(batch, r->shape, r->window);
    attention[key] = {all.add(work.items), all.add(work.folds), static_cast<int>(work.items.size()),
                      static_cast<int>(work.folds.size())};
    const std::size_t count = static_cast<std::size_t>(work.partials) * r->shape.heads;
    states = std::max(states, count);
    values = std::max(values, count * r->shape.head_dim);
  }
  grow(partial_values, values * sizeof(float));
  grow(partial_state, states * 2 * sizeof(float));
  // Fresh memory a step: the one before may still be read.
  if (tables != nullptr) gpu.retire(std::move(tables));
  tables = gpu.allocate(all.bytes().size());
  std::memcpy(tables->data(), all.bytes().data(), all.bytes().size());
}

void StepState::bind(const core::Batch& batch, std::size_t begin, std::size_t end,
                     std::vector<Memory*> given_slots, std::vector<Memory*> given_slabs,
                     Memory* given_logits) {
  rows = batch.rows();
  sampled = static_cast<int>(batch.sampled_rows.size());
  slots = std::move(given_slots);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != nullptr) continue;
    grow(slot_memory_[i], static_cast<std::size_t>(rows) * plan.slots[i].cols * sizeof(float));
    slots[i] = slot_memory_[i].get();
  }
  slabs = std::move(given_slabs);
  if (slabs.empty() || slabs.size() > kMaxSlabs) {
    throw std::logic_error("the KV pool has more slabs than the Metal kernels bind");
  }
  slabs.resize(kMaxSlabs, slabs.back());
  logits = given_logits;
  reserve_inputs(begin, end);
  write_tables(batch, begin, end);
}

const AttentionTable& StepState::attention_table(const PagedAttention& r) const {
  return attention.at({r.shape.heads, r.shape.kv_heads, r.window});
}

namespace {

bool head_fits(const AttentionShape& shape) {
  return shape.head_dim % 32 == 0 && shape.head_dim <= 256 && shape.heads % shape.kv_heads == 0;
}

}  // namespace

bool has_kernel(const Record& record, const Plan& plan) {
  auto fits = [&](MatrixId id) {
    return packable(plan.matrices[id].format, plan.matrices[id].cols);
  };
  if (const auto* r = std::get_if<Embed>(&record)) return fits(r->table);
  if (const auto* r = std::get_if<QuantLinear>(&record)) return fits(r->weight);
  if (const auto* r = std::get_if<LmHead>(&record)) return fits(r->weight);
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) return head_fits(r->shape);
  if (const auto* r = std::get_if<PagedAttention>(&record)) return head_fits(r->shape);
  return false;
}

void run_record(StepState& s, const Record& record) {
  if (const auto* r = std::get_if<Embed>(&record)) return run_embed(s, *r);
  if (const auto* r = std::get_if<QuantLinear>(&record)) return run_quant_linear(s, *r);
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) {
    return run_rope_and_cache_write(s, *r);
  }
  if (const auto* r = std::get_if<PagedAttention>(&record)) return run_paged_attention(s, *r);
  if (const auto* r = std::get_if<LmHead>(&record)) return run_lm_head(s, *r);
  throw std::logic_error("a record without a Metal kernel");
}

}  // namespace bodega::ops::metal
