// How blocks leave the tree: eviction, the per-path cap, poisoned nodes, and what the last lock of
// a useless node leaves behind. And the tree's invariants.
#include <algorithm>

#include "kernels/base/verify.hpp"
#include "memory/radix_tree.hpp"

namespace memory {

bool RadixTree::evictable(NodeId id) const {
  const RadixNode& node = nodes_.at(id.index);
  return node.alive && node.checkpoint && node.state_locks == 0;
}

RadixTree::Bundle RadixTree::bundle(NodeId id) const {
  const RadixNode* node = &nodes_.at(id.index);
  Bundle bundle{1, 0};
  if (!node->leaf()) return bundle;
  for (bool first = true; !node->root && node->kv_locks == 0; first = false) {
    if (!first && (node->checkpoint || node->children.size() > 1)) break;
    bundle.pages += static_cast<uint32_t>(node->pages.size());
    node = &nodes_[node->parent.index];
  }
  return bundle;
}

uint32_t RadixTree::checkpoint_above(NodeId id) const {
  for (const RadixNode* node = &nodes_.at(id.index); !node->root;) {
    node = &nodes_[node->parent.index];
    if (node->checkpoint) return node->end;
  }
  return 0;
}

void RadixTree::evict(NodeId id, Freed& freed) {
  VERIFY(evictable(id));
  freed.slots.push_back({*at(id).checkpoint, checkpoint_point(at(id))});
  set_checkpoint(id, std::nullopt);
  prune(id, freed);
}

void RadixTree::prune(NodeId id, Freed& freed) {
  while (at(id).leaf() && !at(id).checkpoint) {
    if (at(id).kv_locks != (at(id).root ? 1u : 0u)) return;
    const NodeId parent = at(id).parent;
    const bool root = at(id).root;
    remove_leaf(id, freed);
    if (root) return;
    id = parent;
  }
}

std::vector<PrefixPoint> RadixTree::page_points(const RadixNode& node) const {
  std::vector<PrefixPoint> points;
  if (node.root) return points;
  PrefixHash prefix = nodes_.at(node.parent.index).prefix;
  const std::span<const KeyElement> span(node.span);
  for (size_t begin = 0; begin < span.size(); begin += config_.page_tokens) {
    const PrefixHash above = prefix;
    prefix = next_prefix(above, span.subspan(begin, config_.page_tokens));
    const auto end = static_cast<uint32_t>(node.begin + begin + config_.page_tokens);
    points.push_back({prefix, above, node.name_space, end});
  }
  return points;
}

void RadixTree::remove_leaf(NodeId id, Freed& freed) {
  RadixNode& node = at(id);
  VERIFY(node.leaf());
  VERIFY(!node.checkpoint);
  if (node.root) {
    roots_.erase(node.name_space);
  } else {
    const std::vector<PrefixPoint> points = page_points(node);
    for (size_t i = 0; i < node.pages.size(); ++i)
      freed.pages.push_back({node.pages[i], points[i]});
    cached_pages_ -= static_cast<uint32_t>(node.pages.size());
    RadixNode& parent = at(node.parent);
    const auto range = parent.children.equal_range(first_page_hash(node.span));
    const auto found = std::find_if(range.first, range.second,
                                    [&](const auto& entry) { return entry.second == id; });
    VERIFY(found != range.second);
    parent.children.erase(found);
    mark(node.parent);
    if (parent.children.size() == 1 && !parent.checkpoint) mark_below(node.parent);
  }
  mark(id);
  const bool changed = node.changed;
  node = RadixNode{};
  node.changed = changed;
  free_nodes_.push_back(id.index);
  --node_count_;
}

uint32_t RadixTree::enforce_cap(NodeId tail, Freed& freed) {
  if (config_.checkpoints_per_path == 0) return 0;
  std::vector<NodeId> spare;  // deepest first
  uint32_t count = 0, dropped = 0;
  for (NodeId id = tail; !at(id).root; id = at(id).parent) {
    const RadixNode& node = at(id);
    if (!node.checkpoint) continue;
    ++count;
    if (id != tail && node.children.size() == 1 && node.state_locks == 0) spare.push_back(id);
  }
  for (; count > config_.checkpoints_per_path && !spare.empty(); --count, ++dropped) {
    evict(spare.back(), freed);  // an inner node: a tombstone remains
    spare.pop_back();
  }
  return dropped;
}

uint32_t RadixTree::poison(const CacheKey& key, uint64_t ticket, Freed& freed) {
  const auto start = root(key.name_space);
  if (!start) return 0;
  const Walk end = walk(*start, key.elements);
  std::vector<NodeId> path;
  for (NodeId id = end.node; !at(id).root; id = at(id).parent) {
    if (at(id).end <= end.matched) path.push_back(id);
  }
  uint32_t dropped = 0;
  std::vector<NodeId> doomed;
  for (const NodeId id : path) {
    if (at(id).checkpoint_planter == ticket && evictable(id)) doomed.push_back(id);
  }
  // What others planted on top of KV that this ticket computed is no better.
  if (!path.empty()) {
    const auto first = std::find_if(path.rbegin(), path.rend(),
                                    [&](NodeId id) { return at(id).kv_planter == ticket; });
    std::vector<NodeId> open;
    if (first != path.rend()) open.push_back(*first);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (evictable(id)) doomed.push_back(id);
      for (const auto& [hash, below] : at(id).children) open.push_back(below);
    }
  }
  for (const NodeId id : doomed) {
    if (!evictable(id)) continue;  // named twice
    evict(id, freed);
    ++dropped;
  }
  return dropped;
}

void RadixTree::visit(const std::function<void(NodeId, const RadixNode&)>& see) const {
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    if (nodes_[index].alive) see(NodeId{index}, nodes_[index]);
  }
}

void RadixTree::check(std::span<const Receipt> receipts) const {
  std::vector<uint32_t> kv(nodes_.size()), state(nodes_.size());
  for (const Receipt& receipt : receipts) {
    for (NodeId id = receipt.node;; id = nodes_[id.index].parent) {
      ++kv[id.index];
      if (nodes_[id.index].root) break;
    }
    if (receipt.state) ++state[receipt.state->index];
  }
  uint32_t count = 0, slots = 0, pages = 0, locked_slots = 0, locked_pages = 0;
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    const RadixNode& node = nodes_[index];
    if (!node.alive) continue;
    ++count;
    VERIFY(node.kv_locks == kv[index] + (node.root ? 1 : 0));
    VERIFY(node.state_locks == state[index]);
    VERIFY(node.state_locks <= node.kv_locks);
    VERIFY(node.state_locks == 0 || node.checkpoint.has_value());
    VERIFY(node.span.size() == node.end - node.begin);
    VERIFY(node.pages.size() * config_.page_tokens == node.span.size());
    VERIFY(node.root == node.span.empty());
    VERIFY(!node.checkpoint || node.end % config_.grid == 0);
    VERIFY(!node.checkpoint || !node.root);
    // An unlocked leaf is of use only by its checkpoint; a root without use is gone.
    VERIFY(!node.leaf() || node.checkpoint || node.kv_locks > (node.root ? 1u : 0u));
    uint32_t below = 0;
    for (const auto& [hash, id] : node.children) {
      const RadixNode& child = nodes_[id.index];
      VERIFY(child.alive);
      VERIFY(child.parent.index == index);
      VERIFY(child.begin == node.end);
      VERIFY(child.name_space == node.name_space);
      VERIFY(first_page_hash(child.span) == hash);
      VERIFY(child.prefix == next_prefix(node.prefix, child.span, config_.page_tokens));
      below += child.kv_locks;
    }
    VERIFY(node.kv_locks >= below);
    slots += node.checkpoint ? 1 : 0;
    locked_slots += node.state_locks > 0 ? 1 : 0;
    pages += static_cast<uint32_t>(node.pages.size());
    locked_pages += node.kv_locks > 0 ? static_cast<uint32_t>(node.pages.size()) : 0;
  }
  VERIFY(count == node_count_);
  VERIFY(count + free_nodes_.size() == nodes_.size());
  VERIFY(slots == cached_slots_);
  VERIFY(pages == cached_pages_);
  VERIFY(locked_slots == locked_slots_);
  VERIFY(locked_pages == locked_pages_);
}

}  // namespace memory
