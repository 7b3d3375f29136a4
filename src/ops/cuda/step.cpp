#include "ops/cuda/step.h"

#include <algorithm>

namespace bodega::ops::cuda {
namespace {

constexpr int kRowPadding = 128;  // rows a block of the widest kernel reads

// Shared memory of `wide`: stages of weights, x and sums, then a total an output
// (kernels/quant_linear.cu).
unsigned wide_shared(const std::string& definitions, int row_tiles, int tokens, int stages) {
  const bool eight = definitions.find("BITS=8") != std::string::npos;
  const int groups = definitions.find("GROUP=32") != std::string::npos ? 2 : 1;
  const int unit = 128 * (eight ? 8 : 4) + 64 * groups;
  const int stage = row_tiles * unit + tokens * kUnitCols * 2 + groups * tokens * 4;
  return static_cast<unsigned>(stages * stage + row_tiles * 16 * tokens * 4);
}
unsigned narrow_shared(const std::string& definitions, int tiles, int stages) {
  const bool eight = definitions.find("BITS=8") != std::string::npos;
  const int groups = definitions.find("GROUP=32") != std::string::npos ? 2 : 1;
  const int ring = kSlices * stages * tiles * (128 * (eight ? 8 : 4) + 64 * groups);
  return static_cast<unsigned>(std::max(ring, kSlices * tiles * 128 * 4));
}

}  // namespace

StepTables::~StepTables() {
  for (Staging& staging : ring_) {
    if (staging.memory != nullptr) driver_.release_host(staging.memory);
    if (staging.sent != nullptr) driver_.release(staging.sent);
  }
}

void StepTables::send(StreamHandle stream) {
  Staging& staging = ring_[next_];
  next_ = (next_ + 1) % kRing;
  if (staging.sent == nullptr) {
    staging.sent = driver_.make_event();
  } else {
    driver_.wait(staging.sent);
  }
  if (staging.bytes < bytes_.size()) {
    if (staging.memory != nullptr) driver_.release_host(staging.memory);
    staging.bytes = bytes_.size() * 2;
    staging.memory = driver_.allocate_host(staging.bytes);
  }
  device_.reserve(std::bit_ceil(bytes_.size()));
  std::memcpy(staging.memory, bytes_.data(), bytes_.size());
  driver_.upload_async(device_.address(), staging.memory, bytes_.size(), stream);
  driver_.record(staging.sent, stream);
}

StepState::StepState(const Driver& given, const Plan& p)
    : driver(given),
      plan(p),
      library(given),
      matrices(p.matrices.size()),
      slots(p.slots.size()),
      launches(given),
      tables(given) {
  for (const NamedVector& v : p.vectors) {
    vectors.emplace_back(std::max<std::size_t>(16, v.values.size() * sizeof(float)));
    driver.upload(vectors.back().address(), v.values.data(), v.values.size() * sizeof(float));
  }
  prepare = library.get(kKernelSources.rows, "", "prepare", 0);
  rotary_table = library.get(kKernelSources.rows, "", "rotary_table", 0);
  rope = library.get(kKernelSources.rows, "", "rope_and_cache_write", 0);
}

const LinearKernels& StepState::kernels_of(const PackedMatrix& w) {
  const std::string d = w.definitions();
  const auto [at, added] = linear_kernels.try_emplace(d);
  if (!added) return at->second;
  LinearKernels& k = at->second;
  const char* source = kKernelSources.quant_linear;
  k.narrow8 = library.get(source, d, "narrow_8", narrow_shared(d, 2, 5));
  k.narrow16 = library.get(source, d, "narrow_16", narrow_shared(d, 2, 5));
  k.wide32 = library.get(source, d, "wide_32", wide_shared(d, 8, 32, 4));
  k.wide64 = library.get(source, d, "wide_64", wide_shared(d, 8, 64, 6));
  k.wide128 = library.get(source, d, "wide_128", wide_shared(d, 8, 128, 6));
  k.reduce = library.get(source, d, "linear_reduce", 0);
  k.embed = library.get(source, d, "embed", 0);
  return k;
}

const AttentionKernels& StepState::attention_of(int head_dim) {
  const auto [at, added] = attention_kernels.try_emplace(head_dim);
  if (!added) return at->second;
  const std::string d = "-DBODEGA_HEAD_DIM=" + std::to_string(head_dim);
  const auto tiles = static_cast<unsigned>(4 * kKeyTile * head_dim * 2);
  const auto state = static_cast<unsigned>(16 * head_dim * 4);
  const char* source = kKernelSources.paged_attention;
  at->second.attend[0] = library.get(source, d, "attend_1", tiles + state);
  at->second.attend[1] = library.get(source, d, "attend_4", tiles + 4 * state);
  at->second.fold = library.get(source, d, "fold", 0);
  return at->second;
}

void StepState::bind(const core::Batch& given, std::size_t begin, std::size_t end) {
  batch = &given;
  rows = given.rows();
  launches.clear();
  rotary_filled.clear();
  attention.clear();
  const auto padded =
      static_cast<std::size_t>((rows + kRowPadding - 1) / kRowPadding * kRowPadding);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    reserve(slots[slot], padded * plan.slots[slot].cols * sizeof(float));
  }
  const std::int64_t block_bytes = plan.kv_groups.front().block_bytes();
  std::vector<DeviceAddress> block_list;
  block_list.reserve(given.blocks.size());
  for (const core::BlockRef& ref : given.blocks) {
    block_list.push_back(slabs[ref.slab] + static_cast<DeviceAddress>(ref.offset * block_bytes));
  }
  std::vector<int> position_list(rows);
  std::vector<DeviceAddress> row_block_list(rows);
  for (const core::SequenceSlice& slice : given.sequences) {
    for (int i = 0; i < slice.row_count; ++i) {
      const int position = slice.position + i;
      position_list[slice.row_begin + i] = position;
      row_block_list[slice.row_begin + i] = block_list[slice.block_begin + position / kBlockTokens];
    }
  }
  tables.clear();
  tokens = tables.add(given.tokens);
  positions = tables.add(position_list);
  row_blocks = tables.add(row_block_list);
  sampled = tables.add(given.sampled_rows);
  blocks = tables.add(block_list);
  for (std::size_t i = begin; i < end; ++i) {
    const auto* r = std::get_if<PagedAttention>(&plan.records[i]);
    if (r == nullptr) continue;
    const auto [at, added] = attention.try_emplace({r->shape.heads, r->shape.kv_heads, r->window});
    if (!added) continue;
    AttentionTable& table = at->second;
    table = attention_table(given, r->shape, r->window, driver.multiprocessors());
    for (int w = 0; w < 2; ++w) table.item_offset[w] = tables.add(table.items[w]);
    table.fold_offset = tables.add(table.folds);
  }
  tables.send(stream);
}

void StepState::reserve(DeviceMemory& memory, std::size_t bytes) {
  if (bytes <= memory.bytes()) return;
  retired.push_back(std::move(memory));
  memory = DeviceMemory(bytes);
}

void StepState::submit() {
  launches.submit(stream);
  retired.clear();
}

}  // namespace bodega::ops::cuda
