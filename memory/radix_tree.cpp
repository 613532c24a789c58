#include "memory/radix_tree.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {

RadixTree::RadixTree(const TreeConfig& config) : config_(config) {
  VERIFY(config.page_tokens > 0);
  VERIFY(config.grid > 0);
  VERIFY(config.grid % config.page_tokens == 0);
}

// ---- finding ----

uint64_t RadixTree::first_page_hash(std::span<const KeyElement> elements) const {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (const KeyElement element : elements.first(config_.page_tokens)) {
    hash = (hash ^ element) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

std::optional<NodeId> RadixTree::child(const RadixNode& parent,
                                       std::span<const KeyElement> rest) const {
  if (rest.size() < config_.page_tokens) return std::nullopt;
  const auto range = parent.children.equal_range(first_page_hash(rest));
  for (auto it = range.first; it != range.second; ++it) {
    const auto& span = nodes_[it->second.index].span;
    if (std::equal(span.begin(), span.begin() + config_.page_tokens, rest.begin())) {
      return it->second;
    }
  }
  return std::nullopt;
}

RadixTree::Walk RadixTree::walk(NodeId from, std::span<const KeyElement> key) const {
  Walk walk{from, nodes_[from.index].end};
  while (const auto next = child(nodes_[walk.node.index], key.subspan(walk.matched))) {
    const RadixNode& node = nodes_[next->index];
    const auto rest = key.subspan(walk.matched);
    const size_t most = std::min(rest.size(), node.span.size());
    const auto end =
        std::mismatch(node.span.begin(), node.span.begin() + static_cast<long>(most), rest.begin());
    const auto equal = static_cast<uint32_t>(end.first - node.span.begin());
    walk.node = *next;
    walk.matched += equal / config_.page_tokens * config_.page_tokens;
    if (walk.matched < node.end) break;
  }
  return walk;
}

std::optional<NodeId> RadixTree::root(uint64_t name_space) const {
  const auto found = roots_.find(name_space);
  return found == roots_.end() ? std::nullopt : std::optional(found->second);
}

Match RadixTree::match(const CacheKey& key, uint32_t kv_limit, uint32_t restore_limit) const {
  Match match;
  match.node = root(key.name_space);
  if (!match.node) return match;
  const std::span<const KeyElement> elements(key.elements);
  const Walk end = walk(*match.node, elements.first(std::min<size_t>(kv_limit, elements.size())));
  match.node = end.node;
  match.kv = end.matched;
  match.branch = end.matched / config_.grid * config_.grid;
  for (NodeId id = end.node;; id = nodes_[id.index].parent) {
    const RadixNode& node = nodes_[id.index];
    if (node.root) break;
    if (!node.checkpoint || node.end > match.kv) continue;
    match.deepest = std::max(match.deepest, node.end);
    if (node.end == match.branch) match.branch = 0;  // planted already
    if (node.end > restore_limit) continue;
    match.checkpoint = id;
    match.position = node.end;
    break;
  }
  if (match.branch <= match.position) match.branch = 0;
  return match;
}

void RadixTree::collect_pages(NodeId id, std::vector<PageId>& pages) const {
  std::vector<const RadixNode*> path;
  for (const RadixNode* node = &nodes_.at(id.index); !node->root;) {
    path.push_back(node);
    node = &nodes_[node->parent.index];
  }
  for (auto node = path.rbegin(); node != path.rend(); ++node) {
    pages.insert(pages.end(), (*node)->pages.begin(), (*node)->pages.end());
  }
}

// ---- locks ----

Receipt RadixTree::acquire(uint64_t name_space, const Match& match) {
  ++tick_;
  Receipt receipt{match.node ? *match.node : root_of(name_space), match.checkpoint};
  if (match.kv < at(receipt.node).end) receipt.node = split(receipt.node, match.kv);
  lock_path(receipt.node, std::nullopt);
  for (NodeId id = receipt.node; !at(id).root; id = at(id).parent) {
    ++at(id).hits;
    at(id).kv_used = tick_;
    if (at(id).leaf()) mark(id);
  }
  if (receipt.state) {
    lock_state(*receipt.state);
    RadixNode& node = at(*receipt.state);
    node.state_used = tick_;
    if (++node.restores > 1) node.superseded = false;
  }
  return receipt;
}

void RadixTree::lock_state(NodeId id) {
  RadixNode& node = at(id);
  VERIFY(node.checkpoint.has_value());
  if (node.state_locks++ == 0) ++locked_slots_;
  mark(id);
}

void RadixTree::unlock_state(NodeId id) {
  RadixNode& node = at(id);
  VERIFY(node.state_locks > 0);
  VERIFY(node.checkpoint.has_value());
  if (--node.state_locks == 0) --locked_slots_;
  mark(id);
}

void RadixTree::lock_path(NodeId node, std::optional<NodeId> up_to) {
  const NodeId end = node;
  for (NodeId id = node; id != up_to; id = at(id).parent) {
    RadixNode& here = at(id);
    if (here.kv_locks++ == 0) {
      locked_pages_ += static_cast<uint32_t>(here.pages.size());
      mark(id);
      if (id == end) mark_below(id);
    }
    if (here.root) break;
  }
}

void RadixTree::unlock_path(NodeId node) {
  const NodeId end = node;
  for (NodeId id = node;; id = at(id).parent) {
    RadixNode& here = at(id);
    VERIFY(here.kv_locks > (here.root ? 1u : 0u));
    if (--here.kv_locks == 0) {
      locked_pages_ -= static_cast<uint32_t>(here.pages.size());
      mark(id);
      if (id == end) mark_below(id);
    }
    if (here.root) break;
  }
}

void RadixTree::release_state(Receipt& receipt) {
  if (receipt.state) unlock_state(*receipt.state);
  receipt.state.reset();
}

void RadixTree::release(const Receipt& receipt, Freed& freed) {
  Receipt rest = receipt;
  release_state(rest);
  unlock_path(rest.node);
  prune(rest.node, freed);
}

Receipt RadixTree::pin(NodeId node) {
  Receipt receipt{node, std::nullopt};
  lock_path(node, std::nullopt);
  if (at(node).checkpoint) {
    receipt.state = node;
    lock_state(node);
  }
  return receipt;
}

void RadixTree::lower(Receipt& receipt, NodeId node) {
  lock_path(node, receipt.node);
  // The old end is an ancestor: what ended there now runs through.
  receipt.node = node;
}

// ---- planting ----

NodeId RadixTree::root_of(uint64_t name_space) {
  if (const auto found = root(name_space)) return *found;
  RadixNode fresh;
  fresh.root = true;
  fresh.name_space = name_space;
  fresh.prefix = root_prefix(name_space);
  fresh.kv_locks = 1;
  return roots_[name_space] = make_node(fresh);
}

NodeId RadixTree::make_node(const RadixNode& from) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.emplace_back();
  }
  const NodeId id{free_nodes_.back()};
  free_nodes_.pop_back();
  const bool changed = at(id).changed;  // its last life may still be in the list
  at(id) = from;
  at(id).changed = changed;
  at(id).alive = true;
  ++node_count_;
  return id;
}

NodeId RadixTree::split(NodeId node, uint32_t position) {
  RadixNode& lower = at(node);
  VERIFY(position > lower.begin);
  VERIFY(position < lower.end);
  VERIFY(position % config_.page_tokens == 0);
  RadixNode upper;
  upper.name_space = lower.name_space;
  upper.parent = lower.parent;
  upper.begin = lower.begin;
  upper.end = position;
  const auto cut = static_cast<long>(position - lower.begin);
  const auto page_cut = cut / static_cast<long>(config_.page_tokens);
  const uint64_t hash = first_page_hash(lower.span);
  upper.span.assign(lower.span.begin(), lower.span.begin() + cut);
  upper.pages.assign(lower.pages.begin(), lower.pages.begin() + page_cut);
  upper.kv_locks = lower.kv_locks;  // every receipt that runs through the end runs through here
  upper.kv_used = lower.kv_used;
  upper.hits = lower.hits;
  upper.kv_planter = lower.kv_planter;
  upper.prefix = next_prefix(at(lower.parent).prefix, upper.span, config_.page_tokens);
  const NodeId above = make_node(upper);
  const auto range = at(lower.parent).children.equal_range(hash);
  for (auto it = range.first; it != range.second; ++it) {
    if (it->second == node) it->second = above;
  }
  lower.span.erase(lower.span.begin(), lower.span.begin() + cut);
  lower.pages.erase(lower.pages.begin(), lower.pages.begin() + page_cut);
  lower.begin = position;
  lower.parent = above;
  at(above).children.emplace(first_page_hash(lower.span), node);
  return above;
}

NodeId RadixTree::grow_leaf(NodeId parent, const Plant& plant) {
  RadixNode leaf;
  leaf.name_space = plant.name_space;
  leaf.parent = parent;
  leaf.begin = at(parent).end;
  leaf.end = plant.position;
  leaf.span.assign(plant.key.begin() + leaf.begin, plant.key.end());
  leaf.prefix = next_prefix(at(parent).prefix, leaf.span, config_.page_tokens);
  leaf.pages.assign(plant.pages.begin() + leaf.begin / config_.page_tokens, plant.pages.end());
  leaf.kv_used = tick_;
  leaf.kv_planter = plant.ticket;
  const NodeId id = make_node(leaf);
  at(parent).children.emplace(first_page_hash(at(id).span), id);
  cached_pages_ += static_cast<uint32_t>(at(id).pages.size());
  mark(parent);  // maybe a leaf until now
  // A first sibling: the bundles below now stop at `parent`.
  if (at(parent).children.size() == 2) mark_below(parent);
  return id;
}

Inserted RadixTree::insert(const Plant& plant) {
  VERIFY(plant.position == plant.key.size());
  VERIFY(plant.position > 0);
  VERIFY(plant.position % config_.grid == 0);
  VERIFY(plant.pages.size() * config_.page_tokens == plant.position);
  ++tick_;
  Walk end = walk(plant.from ? *plant.from : root_of(plant.name_space), plant.key);
  Inserted inserted;
  inserted.first_new = end.matched;
  // A walk enters a node only when its first page matches, so a split leaves neither half empty.
  if (end.matched < at(end.node).end) end.node = split(end.node, end.matched);
  if (end.matched < plant.position) end.node = grow_leaf(end.node, plant);
  inserted.node = end.node;
  for (NodeId id = end.node; !at(id).root; id = at(id).parent) at(id).kv_used = tick_;
  RadixNode& node = at(end.node);
  mark(end.node);
  inserted.attached = !node.checkpoint;
  if (inserted.attached) {
    set_checkpoint(end.node, plant.slot);
    node.checkpoint_planter = plant.ticket;
    node.state_used = tick_;
    node.restores = 0;
    node.superseded = false;
  }
  return inserted;
}

void RadixTree::set_checkpoint(NodeId node, std::optional<SlotId> slot) {
  VERIFY(at(node).state_locks == 0);
  VERIFY(slot.has_value() != at(node).checkpoint.has_value());
  at(node).checkpoint = slot;
  cached_slots_ += slot ? 1 : 0;
  cached_slots_ -= slot ? 0 : 1;
  mark(node);
  mark_below(node);
}

bool RadixTree::fork(NodeId id) const {
  const RadixNode& node = nodes_[id.index];
  if (node.restores > 1) return true;
  uint32_t ways = 0;  // on from here that others took than who planted it
  for (const auto& [hash, below] : node.children) {
    ways += nodes_[below.index].kv_planter != node.checkpoint_planter ? 1 : 0;
    if (ways > 1) return true;
  }
  return false;
}

void RadixTree::supersede(NodeId tip, uint64_t ticket) {
  NodeId id = tip;
  do id = at(id).parent;
  while (!at(id).root && (!at(id).checkpoint || at(id).checkpoint_planter == ticket));
  if (at(id).root || fork(id)) return;
  const uint64_t old = at(id).checkpoint_planter;
  // What the same turn computed beyond it, and the new one passed by.
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId above = open.back();
    open.pop_back();
    for (const auto& [hash, below] : at(above).children) {
      RadixNode& node = at(below);
      if (node.kv_planter != old || node.kv_locks > 0) continue;
      if (node.restores == 0) node.superseded = true;
      mark(below);
      open.push_back(below);
    }
  }
  // Itself, and what that turn planted on the way to it.
  for (; !at(id).root; id = at(id).parent) {
    if (!at(id).checkpoint) continue;
    if (at(id).checkpoint_planter != old || fork(id)) break;
    at(id).superseded = true;
    mark(id);
  }
}

// ---- what an eviction policy hears of ----

void RadixTree::mark(NodeId node) {
  if (at(node).changed) return;
  at(node).changed = true;
  changed_.push_back(node);
}

// The nearest checkpoints below: their replay starts, or their bundle ends, somewhere else now.
void RadixTree::mark_below(NodeId node) {
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const auto& [hash, below] : at(id).children) {
      mark(below);
      if (!at(below).checkpoint) open.push_back(below);
    }
  }
}

std::vector<NodeId> RadixTree::take_changed() {
  for (const NodeId node : changed_) at(node).changed = false;
  return std::exchange(changed_, {});
}

}  // namespace memory
