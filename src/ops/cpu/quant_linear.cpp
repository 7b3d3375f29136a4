#include <algorithm>
#include <cstring>

#include "ops/cpu/step.h"

namespace bodega::ops::cpu {
namespace {

constexpr std::int64_t kChunkBytes = 64 * 1024;  // of weights: a few microseconds of the bus
constexpr int kPrepareElements = 8192;

bool is_pair(const QuantLinear& r) {
  return r.epilogue == Epilogue::kSwiGlu || r.epilogue == Epilogue::kGeGlu;
}

void prepare(const void* context, int chunk, int) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<QuantLinear>(*bound.record);
  StepState& s = *bound.state;
  const PackedView& w = s.matrix(r.weight).view();
  const LinearInput input{&s, r.norm ? &*r.norm : nullptr, &w, s.rows};
  const int end = std::min(s.rows, (chunk + 1) * bound.chunk_rows);
  for (int row = chunk * bound.chunk_rows; row < end; ++row)
    prepare_row(input, s.row(r.in, row), row);
}

// Writes the columns of one tile pair of every row.
void store_unit(const QuantLinear& r, StepState& s, UnitTiles tiles, const float* y) {
  const int lanes = s.kernels->lanes;
  const int total = s.matrix(r.weight).rows();
  const float* bias = r.bias ? s.vector(*r.bias) : nullptr;
  for (int t = 0; t < (tiles.second < 0 ? 1 : 2); ++t) {
    const int begin = (t == 0 ? tiles.first : tiles.second) * lanes;
    const int count = std::min(lanes, total - begin);
    for (int row = 0; row < s.rows; ++row) {
      const float* from = y + (row * 2 + t) * lanes;
      float* to = s.row(r.out, row) + r.out_column + begin;
      const bool add = r.epilogue == Epilogue::kResidual;
      for (int i = 0; i < count; ++i) {
        const float value = bias != nullptr ? from[i] + bias[begin + i] : from[i];
        to[i] = add ? to[i] + value : value;
      }
    }
  }
}

void store_glu_unit(const QuantLinear& r, StepState& s, int unit, float* y) {
  const int lanes = s.kernels->lanes;
  const int half = s.matrix(r.weight).rows() / 2;
  const int begin = unit * lanes;
  const int count = std::min(lanes, half - begin);
  const float* bias = r.bias ? s.vector(*r.bias) : nullptr;
  const Glu kind = r.epilogue == Epilogue::kSwiGlu ? Glu::kSilu : Glu::kGeluTanh;
  float out[kMaxLanes];
  for (int row = 0; row < s.rows; ++row) {
    float* gate = y + row * 2 * lanes;
    float* up = gate + lanes;
    for (int i = 0; bias != nullptr && i < count; ++i) {
      gate[i] += bias[begin + i];
      up[i] += bias[half + begin + i];
    }
    s.kernels->glu(kind, gate, up, lanes, out);
    std::memcpy(s.row(r.out, row) + r.out_column + begin, out, sizeof(float) * count);
  }
}

void multiply(const void* context, int chunk, int worker) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<QuantLinear>(*bound.record);
  StepState& s = *bound.state;
  const PackedMatrix& w = s.matrix(r.weight);
  const int end = std::min(unit_count(w, is_pair(r)), (chunk + 1) * bound.chunk_units);
  for (int unit = chunk * bound.chunk_units; unit < end; ++unit) {
    const UnitTiles tiles = unit_tiles(w, is_pair(r), unit);
    const float* y = multiply_unit(s, w, tiles, s.rows, worker);
    if (is_pair(r)) {
      store_glu_unit(r, s, unit, const_cast<float*>(y));
    } else {
      store_unit(r, s, tiles, y);
    }
  }
}

}  // namespace

void prepare_row(const LinearInput& input, const float* x, int row) {
  StepState& s = *input.state;
  const PackedView& w = *input.matrix;
  float* normed = s.dense_rows.data() + static_cast<std::size_t>(row) * w.cols;
  if (input.norm != nullptr) {
    s.kernels->rms_norm(x, s.vector(input.norm->weight), input.norm->eps, input.norm->weight_offset,
                        w.cols, normed);
    x = normed;
  }
  if (w.storage == Storage::kAffine) {
    s.kernels->quantize(x, s.quantized(w, input.rows), row);
  } else if (x != normed) {
    std::memcpy(normed, x, sizeof(float) * w.cols);
  }
}

void reserve_input(StepState& s, int rows, int cols) {
  const std::size_t elements = static_cast<std::size_t>(padded_rows(rows)) * cols;
  if (s.dense_rows.size() < elements) s.dense_rows.resize(elements);
  if (s.q_scale.size() < elements / kGroup) {
    s.q.resize(elements / kGroup * words_of(Activations::kInt16));
    s.q_scale.resize(elements / kGroup);
    s.q_sum.resize(elements / kGroup);
    s.q_isum.resize(elements / kGroup);
  }
}

int unit_count(const PackedMatrix& w, bool pair) {
  return pair ? w.tiles() / 2 : (w.tiles() + 1) / 2;
}

UnitTiles unit_tiles(const PackedMatrix& w, bool pair, int unit) {
  if (pair) return {unit, w.tiles() / 2 + unit};
  const int second = 2 * unit + 1;
  return {2 * unit, second < w.tiles() ? second : -1};
}

const float* multiply_unit(StepState& s, const PackedMatrix& w, UnitTiles tiles, int rows,
                           int worker) {
  std::vector<float>& out = s.worker_rows[worker];
  const std::size_t needed = static_cast<std::size_t>(rows) * 2 * s.kernels->lanes;
  if (out.size() < needed) out.resize(needed);
  if (w.view().storage == Storage::kAffine) {
    s.kernels->linear(w.view(), tiles.first, tiles.second, s.quantized(w.view(), rows), rows,
                      out.data(), s.worker_scratch[worker].data());
  } else {
    s.kernels->dense(w.view(), tiles.first, tiles.second, s.dense_rows.data(), rows, out.data());
  }
  return out.data();
}

int units_per_chunk(const StepState& s, const PackedMatrix& w, int units, int rows) {
  const std::int64_t unit_bytes = static_cast<std::int64_t>(w.view().tile_bytes) * 2;
  const std::int64_t wanted = kChunkBytes / std::max(1, rows / 4);
  const int by_bytes = static_cast<int>(std::max<std::int64_t>(1, wanted / unit_bytes));
  return std::max(1, std::min(by_bytes, units / (4 * s.threads)));
}

void add_quant_linear(BoundRecord& bound, PhaseList& phases) {
  const auto& r = std::get<QuantLinear>(*bound.record);
  StepState& s = *bound.state;
  const PackedMatrix& w = s.matrix(r.weight);
  reserve_input(s, s.rows, w.cols());
  bound.chunk_rows = std::max(1, kPrepareElements / w.cols());
  const int units = unit_count(w, is_pair(r));
  bound.chunk_units = units_per_chunk(s, w, units, s.rows);
  phases.push_back({(s.rows + bound.chunk_rows - 1) / bound.chunk_rows, prepare, &bound});
  phases.push_back({(units + bound.chunk_units - 1) / bound.chunk_units, multiply, &bound});
}

}  // namespace bodega::ops::cpu
