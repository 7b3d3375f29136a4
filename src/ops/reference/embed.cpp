#include "ops/reference/reference.h"

namespace bodega::ops::reference {

namespace mx = mlx::core;

void embed(const Embed& record, const Context& c) {
  const mx::array tokens(c.batch.tokens.data(), mx::Shape{c.batch.rows()}, mx::int32);
  mx::array rows = c.weights.take(tokens, record.table);
  if (record.scale != 1.0F) rows = mx::multiply(rows, mx::array(record.scale));
  c.arrays.slots[record.out] = rows;
}

void run(const Record& record, const Context& context) {
  struct Visitor {
    const Context& c;
    void operator()(const Embed& r) const { embed(r, c); }
    void operator()(const QuantLinear& r) const { quant_linear(r, c); }
    void operator()(const RopeAndCacheWrite& r) const { rope_and_cache_write(r, c); }
    void operator()(const PagedAttention& r) const { paged_attention(r, c); }
    void operator()(const Moe& r) const { moe(r, c); }
    void operator()(const LmHead& r) const { lm_head(r, c); }
  };
  std::visit(Visitor{context}, record);
}

}  // namespace bodega::ops::reference
