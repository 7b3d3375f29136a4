#include "ops/self_check.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <sstream>

#include "ops/executor.h"

namespace bodega::ops {
namespace {

namespace mx = mlx::core;

constexpr int kVocabulary = 40;
constexpr int kOutputs = 80;  // no whole number of the kernels' tiles, twice forty

// Pseudo-random numbers that are the same everywhere.
std::uint32_t scramble(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x7FEB352DU;
  x = (x ^ (x >> 15U)) * 0x846CA68BU;
  return x ^ (x >> 16U);
}
float unit(std::uint32_t x) {  // [-1, 1) in steps that every 16-bit type holds
  return static_cast<float>(static_cast<int>(scramble(x) % 256U) - 128) / 128.0F;
}

class TrialWeights : public WeightSource {
 public:
  TrialWeights(const WeightFormat& format, int rows, int cols) : WeightSource(format, rows, cols) {}

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const bool affine = format().kind == WeightFormat::Kind::kAffine;
    const std::uint32_t mask = (1U << static_cast<unsigned>(format().bits)) - 1U;
    const int groups = cols() / format().group_size;
    const float half = std::ldexp(1.0F, format().bits - 1);
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < cols(); ++k) {
        // The highest code of mxfp8 is no number.
        const std::uint32_t code = scramble(at(row + i, k)) & mask;
        codes[static_cast<std::size_t>(i) * cols() + k] =
            static_cast<std::uint8_t>(affine ? code : code & 0x77U & mask);
      }
      for (int g = 0; g < groups; ++g) {
        const float scale = (1.25F + 0.5F * unit(at(row + i, 7919 + g))) / (half * 8.0F);
        scales[i * groups + g] = affine ? scale : 0.125F;
        if (affine) biases[i * groups + g] = -half * scale;
      }
    }
  }
  void read_values(int row, int count, float* values) const override {
    if (format().quantized()) return WeightSource::read_values(row, count, values);
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < cols(); ++k) {
        values[static_cast<std::size_t>(i) * cols() + k] = 0.125F * unit(at(row + i, k));
      }
    }
  }

 private:
  static std::uint32_t at(int row, int col) {
    return static_cast<std::uint32_t>(row) * 65537U + static_cast<std::uint32_t>(col);
  }
};

// A plan of the record alone, and what it needs before it.
class Trial {
 public:
  Trial(const Plan& plan, const Record& record) : plan_(plan) {
    std::visit([this](const auto& r) { add(r); }, record);
    if (!has_group_) builder_.kv_group({1, 1, 32});
    if (!has_head_) builder_.add(LmHead{x_, {}, matrix(dense(), kVocabulary, cols_)});
  }
  Plan finish() { return builder_.finish(cols_, kVocabulary, 64); }
  std::size_t record() const { return record_; }

 private:
  static WeightFormat dense() { return {WeightFormat::Kind::kDense, 0, 0, FloatType::kF16}; }

  MatrixId matrix(const WeightFormat& format, int rows, int cols) {
    return builder_.matrix("trial", std::make_shared<TrialWeights>(format, rows, cols));
  }
  VectorId vector(int size, unsigned seed, float offset) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) values[i] = offset + 0.5F * unit(seed + i);
    return builder_.vector("trial", values);
  }
  std::optional<Norm> norm(const std::optional<Norm>& like, int size) {
    if (!like) return {};
    return Norm{vector(size, 3, 1.0F), like->eps, like->weight_offset};
  }
  // Input rows of so many columns.
  void start(int cols, const WeightFormat& table) {
    cols_ = cols;
    x_ = builder_.slot("in", cols);
    builder_.add(Embed{matrix(table, kVocabulary, cols), x_, 1.0F});
    record_ = 0;
  }
  int cols_for(MatrixId id) const {
    const WeightFormat& format = plan_.matrices[id].format;
    return format.quantized() ? std::max(128, 2 * format.group_size) : 128;
  }
  const WeightFormat& format(MatrixId id) const { return plan_.matrices[id].format; }

  void add(const Embed& r) { start(cols_for(r.table), format(r.table)); }
  void add(const QuantLinear& r) {
    start(cols_for(r.weight), dense());
    const bool glu = r.epilogue == Epilogue::kSwiGlu || r.epilogue == Epilogue::kGeGlu;
    QuantLinear like = r;
    like.in = x_;
    like.norm = norm(r.norm, cols_);
    const int outputs = r.epilogue == Epilogue::kResidual ? cols_ : kOutputs;
    like.weight = matrix(format(r.weight), outputs, cols_);
    if (r.bias) like.bias = vector(outputs, 5, 0.0F);
    like.out =
        r.epilogue == Epilogue::kResidual ? x_ : builder_.slot("out", glu ? outputs / 2 : outputs);
    like.out_column = 0;
    builder_.add(like);
    record_ = 1;
  }
  // qkv rows and one rotation that fills the cache; `r` rotates as the plan does where it is one.
  void add(RopeAndCacheWrite r) {
    const AttentionShape shape{r.shape.heads / r.shape.kv_heads, 1, r.shape.head_dim};
    start((shape.heads + 2) * shape.head_dim, dense());
    has_group_ = true;
    r.qkv = x_;
    r.shape = shape;
    if (r.rotary_dim > 0) {
      const std::vector<float>& own = plan_.vectors[r.inv_freq].values;
      r.inv_freq = builder_.vector("inv_freq", own);
    }
    r.q_norm = norm(r.q_norm, shape.head_dim);
    r.k_norm = norm(r.k_norm, shape.head_dim);
    r.kv = {builder_.kv_group({1, 1, shape.head_dim}), 0};
    builder_.add(r);
    record_ = 1;
  }
  void add(PagedAttention r) {
    RopeAndCacheWrite write;
    write.shape = r.shape;
    add(write);
    r.qkv = x_;
    r.shape = {r.shape.heads / r.shape.kv_heads, 1, r.shape.head_dim};
    r.out = builder_.slot("out", r.shape.heads * r.shape.head_dim);
    if (r.sinks) r.sinks = vector(r.shape.heads, 9, 0.0F);
    r.kv = {0, 0};
    builder_.add(r);
    record_ = 2;
  }
  void add(const Moe&) { start(128, dense()); }  // no device has a kernel yet
  void add(const LmHead& r) {
    start(cols_for(r.weight), dense());
    LmHead like = r;
    like.in = x_;
    like.norm = norm(r.norm, cols_);
    like.weight = matrix(format(r.weight), kVocabulary, cols_);
    if (r.bias) like.bias = vector(kVocabulary, 5, 0.0F);
    builder_.add(like);
    has_head_ = true;
    record_ = 1;
  }

  const Plan& plan_;
  PlanBuilder builder_;
  SlotId x_ = -1;
  int cols_ = 0;
  bool has_group_ = false;
  bool has_head_ = false;
  std::size_t record_ = 0;
};

core::Batch trial_batch(const std::vector<int>& rows, const KvPool& pool) {
  core::Batch batch;
  int block = 0;
  for (int count : rows) {
    core::SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = count;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count = core::blocks_for(count);
    for (int b = 0; b < slice.block_count; ++b) batch.blocks.push_back(pool.ref(block++));
    for (int i = 0; i < count; ++i) batch.tokens.push_back((batch.rows() * 7 + 3) % kVocabulary);
    batch.sampled_rows.push_back(batch.rows() - 1);
    batch.sequences.push_back(slice);
  }
  return batch;
}

// Records that run the same kernels.
std::string kind_of(const Plan& plan, const Record& record) {
  std::ostringstream key;
  key << record_name(record);
  if (const auto* r = std::get_if<Embed>(&record)) key << plan.matrices[r->table].format.name();
  if (const auto* r = std::get_if<QuantLinear>(&record)) {
    key << plan.matrices[r->weight].format.name() << static_cast<int>(r->epilogue)
        << r->norm.has_value() << r->bias.has_value();
  }
  if (const auto* r = std::get_if<LmHead>(&record)) {
    key << plan.matrices[r->weight].format.name() << r->norm.has_value() << r->bias.has_value();
  }
  auto shape = [&](const AttentionShape& s) {
    key << s.heads / s.kv_heads << "x" << s.head_dim << " ";
  };
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) {
    shape(r->shape);
    key << r->rotary_dim << r->interleaved << r->q_norm.has_value() << r->k_norm.has_value();
  }
  if (const auto* r = std::get_if<PagedAttention>(&record)) {
    shape(r->shape);
    key << r->window << " " << r->soft_cap << r->sinks.has_value();
  }
  return key.str();
}

std::string compare(Executor& executor, std::size_t record, const std::vector<int>& rows,
                    double tolerance) {
  for (const RecordCheck& check : executor.check_records(trial_batch(rows, executor.pool()))) {
    // Not a number is never within the tolerance.
    if (check.index == record && !(check.relative_error <= tolerance)) {
      return "off by " + std::to_string(check.relative_error);
    }
  }
  return "";
}

}  // namespace

std::string self_check(const Plan& plan, std::size_t index, mx::Device device, double tolerance) {
  try {
    Trial trial(plan, plan.records[index]);
    ExecutorOptions options;
    options.kv_bytes = std::int64_t{1} << 20;
    options.threads = 1;
    options.self_check = false;
    Executor executor(trial.finish(), device, options);
    for (const std::vector<int>& rows : {std::vector<int>{1}, {9, 3}, {20, 1, 2}}) {
      const std::string difference = compare(executor, trial.record(), rows, tolerance);
      if (!difference.empty()) return difference;
    }
  } catch (const std::exception& error) {  // a kernel that does not compile
    return error.what();
  }
  return "";
}

std::vector<std::string> self_check_all(const Plan& plan, mx::Device device,
                                        const std::vector<bool>& has_kernel) {
  std::map<std::string, std::string> known;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < plan.records.size(); ++i) {
    if (!has_kernel[i]) {
      all.emplace_back();
      continue;
    }
    const std::string kind = kind_of(plan, plan.records[i]);
    const auto found = known.find(kind);
    all.push_back(found != known.end() ? found->second : known[kind] = self_check(plan, i, device));
  }
  return all;
}

}  // namespace bodega::ops
