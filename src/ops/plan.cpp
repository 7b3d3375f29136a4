#include "ops/plan.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace bodega::ops {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

void require(bool fits, const std::string& what) {
  if (!fits) throw Error(ErrorKind::kBadModelFile, "The model's shapes do not fit: " + what);
}

std::int64_t matrix_bytes(const Matrix& m) { return m.format.bytes(m.rows, m.cols); }
std::int64_t matrix_flops(const Matrix& m) { return std::int64_t{2} * m.rows * m.cols; }

int glu_width(const QuantLinear& r, const Matrix& w) {
  const bool pair = r.epilogue == Epilogue::kSwiGlu || r.epilogue == Epilogue::kGeGlu;
  return pair ? w.rows / 2 : w.rows;
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : p_(plan) {}

  void operator()(const Embed& r) const {
    require(matrix(r.table).cols == cols(r.out), "embedding width");
    require(matrix(r.table).rows >= p_.vocab_size, "embedding rows");
  }
  void operator()(const QuantLinear& r) const {
    const Matrix& w = matrix(r.weight);
    require(w.cols == cols(r.in), w.name + " reads " + slot(r.in).name);
    require(glu_width(r, w) + r.out_column <= cols(r.out), w.name + " writes " + slot(r.out).name);
    if (r.bias) require(size(*r.bias) == w.rows, w.name + " bias");
    if (r.norm) require(size(r.norm->weight) == w.cols, w.name + " norm");
  }
  void operator()(const RopeAndCacheWrite& r) const {
    require(cols(r.qkv) == qkv_width(r.shape), "qkv width");
    require(r.rotary_dim <= r.shape.head_dim && r.rotary_dim % 2 == 0, "rotary width");
    if (r.rotary_dim > 0) require(size(r.inv_freq) == r.rotary_dim / 2, "rotary frequencies");
    if (r.q_norm) require(size(r.q_norm->weight) == r.shape.head_dim, "q norm");
    if (r.k_norm) require(size(r.k_norm->weight) == r.shape.head_dim, "k norm");
    check_kv(r.kv, r.shape);
  }
  void operator()(const PagedAttention& r) const {
    require(cols(r.qkv) == qkv_width(r.shape), "qkv width");
    require(cols(r.out) == r.shape.heads * r.shape.head_dim, "attention output width");
    if (r.sinks) require(size(*r.sinks) == r.shape.heads, "sinks");
    check_kv(r.kv, r.shape);
  }
  void operator()(const Moe& r) const {
    require(matrix(r.router).cols == cols(r.in), "router width");
    require(matrix(r.router).rows == static_cast<int>(r.gate_up.size()), "number of experts");
    require(r.gate_up.size() == r.down.size(), "number of experts");
    require(r.top_k >= 1 && r.top_k <= static_cast<int>(r.down.size()), "experts per token");
  }
  void operator()(const LmHead& r) const {
    require(matrix(r.weight).cols == cols(r.in), "lm_head width");
    require(matrix(r.weight).rows == p_.vocab_size, "lm_head rows");
  }

 private:
  static int qkv_width(const AttentionShape& s) { return (s.heads + 2 * s.kv_heads) * s.head_dim; }
  void check_kv(const KvLayer& kv, const AttentionShape& s) const {
    require(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "heads per kv head");
    const KvLayout& layout = p_.kv_groups.at(kv.group);
    require(
        kv.layer < layout.layers && layout.kv_heads == s.kv_heads && layout.head_dim == s.head_dim,
        "kv layer");
  }
  const Matrix& matrix(MatrixId id) const { return p_.matrices.at(id); }
  const Slot& slot(SlotId id) const { return p_.slots.at(id); }
  int cols(SlotId id) const { return p_.slots.at(id).cols; }
  int size(VectorId id) const { return static_cast<int>(p_.vectors.at(id).values.size()); }

  const Plan& p_;
};

// Weights read by a record, in the order it reads them.
std::vector<MatrixId> matrices_of(const Record& record) {
  return std::visit(Overload{
                        [](const Embed&) { return std::vector<MatrixId>{}; },
                        [](const QuantLinear& r) { return std::vector<MatrixId>{r.weight}; },
                        [](const Moe& r) {
                          std::vector<MatrixId> all = r.gate_up;
                          all.insert(all.end(), r.down.begin(), r.down.end());
                          all.push_back(r.router);
                          return all;
                        },
                        [](const LmHead& r) { return std::vector<MatrixId>{r.weight}; },
                        [](const auto&) { return std::vector<MatrixId>{}; },
                    },
                    record);
}

std::string detail(const Record& record, const Plan& p) {
  return std::visit(
      Overload{
          [&](const Embed& r) {
            const Matrix& w = p.matrices[r.table];
            return fmt::format("{} [{}, {}] {}", w.name, w.rows, w.cols, w.format.name());
          },
          [&](const QuantLinear& r) {
            const Matrix& w = p.matrices[r.weight];
            static const char* const kNames[] = {"", " +residual", " swiglu", " geglu"};
            return fmt::format("{} [{}, {}] {}{}{}{}", w.name, w.rows, w.cols, w.format.name(),
                               r.norm ? " norm" : "", r.bias ? " bias" : "",
                               kNames[static_cast<int>(r.epilogue)]);
          },
          [&](const RopeAndCacheWrite& r) {
            return fmt::format("q {} kv {} dim {} rotary {}{}", r.shape.heads, r.shape.kv_heads,
                               r.shape.head_dim, r.rotary_dim, r.q_norm ? " qk-norm" : "");
          },
          [&](const PagedAttention& r) {
            return fmt::format("q {} kv {} dim {}{}", r.shape.heads, r.shape.kv_heads,
                               r.shape.head_dim,
                               r.window > 0 ? fmt::format(" window {}", r.window) : "");
          },
          [&](const Moe& r) {
            return fmt::format("{} experts, {} a token", r.down.size(), r.top_k);
          },
          [&](const LmHead& r) {
            const Matrix& w = p.matrices[r.weight];
            return fmt::format("{} [{}, {}] {}", w.name, w.rows, w.cols, w.format.name());
          },
      },
      record);
}

}  // namespace

std::string record_name(const Record& record) {
  static const char* const kNames[] = {"embed",           "quant_linear", "rope_and_cache_write",
                                       "paged_attention", "moe",          "lm_head"};
  return kNames[record.index()];
}

StepWork Plan::work() const {
  StepWork w;
  for (const Record& record : records) {
    const bool head = std::holds_alternative<LmHead>(record);
    const auto* moe = std::get_if<Moe>(&record);
    for (MatrixId id : matrices_of(record)) {
      const Matrix& m = matrices[id];
      (head ? w.head_bytes : w.weight_bytes) += matrix_bytes(m);
      std::int64_t flops = matrix_flops(m);
      if (moe != nullptr && id != moe->router) {
        flops = flops * moe->top_k / static_cast<std::int64_t>(moe->down.size());
      }
      (head ? w.flops_per_sampled_row : w.flops_per_row) += flops;
    }
    if (const auto* a = std::get_if<PagedAttention>(&record)) {
      w.kv_bytes_per_token += std::int64_t{2} * 2 * a->shape.kv_heads * a->shape.head_dim;
      w.flops_per_kv_token += std::int64_t{4} * a->shape.heads * a->shape.head_dim;
    }
  }
  return w;
}

std::int64_t Plan::weight_bytes() const {
  std::int64_t sum = 0;
  for (const Matrix& m : matrices) sum += matrix_bytes(m);
  for (const NamedVector& v : vectors) sum += static_cast<std::int64_t>(v.values.size()) * 4;
  return sum;
}

std::string Plan::describe() const {
  std::string out = fmt::format("{:>4}  {:<22} {:>10} {:>12}  {}\n", "#", "operation", "MB",
                                "MFLOP/row", "weights");
  int index = 0;
  for (const Record& record : records) {
    double bytes = 0;
    double flops = 0;
    for (MatrixId id : matrices_of(record)) {
      bytes += static_cast<double>(matrix_bytes(matrices[id]));
      flops += static_cast<double>(matrix_flops(matrices[id]));
    }
    out += fmt::format("{:>4}  {:<22} {:>10.2f} {:>12.2f}  {}\n", index++, record_name(record),
                       bytes / 1e6, flops / 1e6, detail(record, *this));
  }
  return out;
}

void Plan::check() const {
  require(!records.empty() && std::holds_alternative<LmHead>(records.back()),
          "a plan ends with lm_head");
  for (const Record& record : records) std::visit(Checker(*this), record);
}

SlotId PlanBuilder::slot(std::string name, int cols) {
  plan_.slots.push_back({std::move(name), cols});
  return static_cast<SlotId>(plan_.slots.size()) - 1;
}

MatrixId PlanBuilder::matrix(std::string name, WeightSourcePtr source) {
  plan_.matrices.push_back(
      {std::move(name), source->rows(), source->cols(), source->format(), std::move(source)});
  return static_cast<MatrixId>(plan_.matrices.size()) - 1;
}

VectorId PlanBuilder::vector(std::string name, std::vector<float> values) {
  plan_.vectors.push_back({std::move(name), std::move(values)});
  return static_cast<VectorId>(plan_.vectors.size()) - 1;
}

int PlanBuilder::kv_group(KvLayout layout) {
  plan_.kv_groups.push_back(layout);
  return static_cast<int>(plan_.kv_groups.size()) - 1;
}

Plan PlanBuilder::finish(int hidden_size, int vocab_size, int context_length) {
  plan_.hidden_size = hidden_size;
  plan_.vocab_size = vocab_size;
  plan_.context_length = context_length;
  plan_.check();
  return std::move(plan_);
}

}  // namespace bodega::ops
