// What a console changes by hand: evict, pin, unpin.
#include <algorithm>
#include <set>
#include <string>

#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"

namespace memory {
namespace {

kernels::Error complaint(NodeId node, const std::string& why) {
  return kernels::invalid("node " + std::to_string(node.index) + " " + why, "node");
}

}  // namespace

kernels::Result<NodeOutcome> HybridCache::change(const NodeOrder& order, CacheReply& out) {
  const NodeId id = order.node;
  if (id.index >= tree_.nodes_max() || !tree_.node(id).alive) {
    return kernels::Error{kernels::ErrorCode::kNotFound,
                          "there is no node " + std::to_string(id.index), "node"};
  }
  if (tree_.node(id).root) return complaint(id, "is a root: it holds nothing");
  journal_.begin(out, {});
  auto outcome = order.action == NodeAction::kEvict ? evict_node(id, out)
                 : order.action == NodeAction::kPin ? pin(id, out)
                                                    : unpin(id, out);
  pool_->settle(out.commands);
  journal_.end();
#ifndef NDEBUG
  check();
#endif
  return outcome;
}

kernels::Result<NodeOutcome> HybridCache::evict_node(NodeId id, CacheReply& out) {
  const RadixNode& node = tree_.node(id);
  if (pins_.contains(id)) return complaint(id, "is pinned: unpin it first");
  if (!node.checkpoint) {
    return complaint(id, "is a tombstone: it has no checkpoint, and its KV goes with the last one "
                      "below it");
  }
  if (!tree_.evictable(id)) {
    return complaint(id, "is locked by " + std::to_string(node.state_locks) +
                          " that restore or pin its checkpoint");
  }
  Freed freed;
  tree_.evict(id, freed);
  const NodeOutcome outcome{id, static_cast<uint32_t>(freed.slots.size()),
                            static_cast<uint32_t>(freed.pages.size()), 0};
  give_back(freed, FreeReason::kFlushed, id, out);
  return outcome;
}

// Every block on the path of a pin, once.
BlockWant HybridCache::pinned_blocks() const {
  std::set<NodeId> path;
  BlockWant blocks;
  for (const auto& [pinned, receipts] : pins_) {
    blocks.slots += std::any_of(receipts.begin(), receipts.end(),
                                [](const Receipt& receipt) { return receipt.state.has_value(); });
    for (NodeId id = pinned; !tree_.node(id).root && path.insert(id).second;
         id = tree_.node(id).parent) {
      blocks.pages += tree_.node(id).pages.size();
    }
  }
  return blocks;
}

kernels::Result<NodeOutcome> HybridCache::pin(NodeId id, CacheReply& out) {
  std::vector<Receipt>& receipts = pins_[id];
  receipts.push_back(tree_.pin(id));
  const uint64_t most = pool_->layout().arena_bytes / 2;
  const BlockPool::Region &states = pool_->state_region(), &pages = pool_->page_region();
  const BlockWant held = pinned_blocks();
  const uint64_t bytes = held.slots * states.block_bytes + held.pages * pages.block_bytes;
  if (held.slots > states.blocks / 2 || held.pages > pages.blocks / 2) {  // of a split arena
    (void)unpin(id, out);
    return complaint(id, "cannot be pinned: pins may hold half of the " +
                          std::to_string(states.blocks) + " states and half of the " +
                          std::to_string(pages.blocks) + " pages");
  }
  if (bytes > most) {
    (void)unpin(id, out);
    return complaint(id, "cannot be pinned: pins would hold " + std::to_string(bytes) +
                          " bytes, and may hold " + std::to_string(most) +
                          ", half of the memory");
  }
  return NodeOutcome{id, tree_.node(id).checkpoint ? 1u : 0u,
                     tree_.node(id).end / tree_.config().page_tokens,
                     static_cast<uint32_t>(receipts.size())};
}

kernels::Result<NodeOutcome> HybridCache::unpin(NodeId id, CacheReply& out) {
  const auto found = pins_.find(id);
  if (found == pins_.end()) return complaint(id, "is not pinned");
  const Receipt receipt = found->second.back();
  found->second.pop_back();
  const auto left = static_cast<uint32_t>(found->second.size());
  if (left == 0) pins_.erase(found);
  Freed freed;
  tree_.release(receipt, freed);
  const NodeOutcome outcome{id, static_cast<uint32_t>(freed.slots.size()),
                            static_cast<uint32_t>(freed.pages.size()), left};
  give_back(freed, FreeReason::kFlushed, id, out);
  return outcome;
}

}  // namespace memory
