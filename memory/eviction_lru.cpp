#include <set>
#include <utility>
#include <vector>

#include "memory/eviction.hpp"

namespace memory {
namespace {

// Nodes in the order of a tick.
class TickOrder {
 public:
  void put(NodeId node, std::optional<uint64_t> tick) {
    if (node.index >= ticks_.size()) ticks_.resize(node.index + 1);
    auto& known = ticks_[node.index];
    if (known == tick) return;
    if (known) order_.erase({*known, node});
    if (tick) order_.insert({*tick, node});
    known = tick;
  }
  std::optional<NodeId> first() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->second);
  }

 private:
  std::vector<std::optional<uint64_t>> ticks_;  // by node
  std::set<std::pair<uint64_t, NodeId>> order_;
};

class LruPolicy : public EvictionPolicy {
 public:
  void refresh(const RadixTree& tree, std::span<const NodeId> changed) override {
    for (const NodeId id : changed) {
      const RadixNode& node = tree.node(id);
      const bool evictable = tree.evictable(id);
      const bool leaf = evictable && node.leaf() && node.kv_locks == 0;
      states_.put(id, evictable ? std::optional(node.state_used) : std::nullopt);
      leaves_.put(id, leaf ? std::optional(node.kv_used) : std::nullopt);
    }
  }

  std::optional<NodeId> pick(const RadixTree&, Shortage shortage) override {
    if (shortage.pages && leaves_.first()) return leaves_.first();
    if (shortage.slots || shortage.exchangeable) return states_.first();
    return std::nullopt;
  }

 private:
  TickOrder states_, leaves_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> make_lru_policy() { return std::make_unique<LruPolicy>(); }

}  // namespace memory
