#include "cache/worth_order.h"

#include <stdexcept>
#include <utility>

namespace bodega::cache {

void WorthOrder::put(std::size_t index, const Node& node) {
  heap_[index] = node;
  places_[static_cast<std::size_t>(node.block)] = static_cast<std::int32_t>(index);
}

void WorthOrder::rise(std::size_t index) {
  const Node node = heap_[index];
  while (index > 0 && node.before(heap_[(index - 1) / 2])) {
    put(index, heap_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  put(index, node);
}

void WorthOrder::sink(std::size_t index) {
  const Node node = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(node)) break;
    put(index, heap_[child]);
    index = child;
  }
  put(index, node);
}

void WorthOrder::insert(BlockId block, std::int64_t worth) {
  heap_.push_back({worth, arrivals_++, block});
  rise(heap_.size() - 1);
}

void WorthOrder::erase(BlockId block) {
  const std::int32_t index = std::exchange(places_[static_cast<std::size_t>(block)], kAbsent);
  if (index == kAbsent) return;
  const auto hole = static_cast<std::size_t>(index);
  const Node last = heap_.back();
  heap_.pop_back();
  if (hole == heap_.size()) return;
  put(hole, last);
  rise(hole);
  sink(static_cast<std::size_t>(place(last.block)));
}

void WorthOrder::check() const {
  std::size_t present = 0;
  for (const std::int32_t index : places_) present += index != kAbsent;
  if (present != heap_.size()) throw std::logic_error("worth order: a place too many");
  for (std::size_t i = 0; i < heap_.size(); ++i) {
    if (place(heap_[i].block) != static_cast<std::int32_t>(i)) {
      throw std::logic_error("worth order: a block is not where it should be");
    }
    if (i > 0 && heap_[i].before(heap_[(i - 1) / 2])) {
      throw std::logic_error("worth order: a block is before one worth less");
    }
  }
}

}  // namespace bodega::cache
