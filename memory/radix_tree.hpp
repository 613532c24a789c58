// The hybrid prefix tree. Attention needs the KV of a whole path, a recurrent layer one state at
// its end: a match is usable only up to the deepest checkpoint, and KV found beyond it tells where
// a checkpoint is worth planting. Edges are keyed by whole pages, one root per namespace.
//
// Invariants (check()): a child's span starts where its parent's ends and is never empty; kv_locks
// of a parent >= the sum of its children's; state_locks <= kv_locks; no unlocked leaf lacks a
// checkpoint; a checkpoint's position is a multiple of the grid.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/radix_node.hpp"

namespace memory {

struct TreeConfig {
  uint32_t page_tokens = 64;
  uint32_t grid = 64;  // a multiple of page_tokens
  // A path keeps at most about this many checkpoints (0 = no limit); see enforce_cap().
  uint32_t checkpoints_per_path = 0;
};

// Blocks that left the tree, and what they held; their new owner gives them back to the pool.
struct Freed {
  struct Slot {
    SlotId id;
    PrefixPoint at;
  };
  struct Page {
    PageId id;
    PrefixPoint at;
  };
  std::vector<Slot> slots;
  std::vector<Page> pages;
};

struct Match {
  std::optional<NodeId> node;  // where the walk ended, maybe inside its span; none: not even a root
  uint32_t kv = 0;             // positions whose KV the tree has, a multiple of the page
  std::optional<NodeId> checkpoint;  // the deepest usable one
  uint32_t position = 0;             // its position; 0: none
  uint32_t branch = 0;               // where a checkpoint is worth planting; 0: nowhere
  uint32_t deepest = 0;              // the deepest checkpoint on the path, usable or not
};

// What acquire() locked; release() replays exactly this.
struct Receipt {
  NodeId node;                  // KV locks on the path to here
  std::optional<NodeId> state;  // state lock
};

struct Inserted {
  NodeId node;             // ends at the donated position
  bool attached = false;   // false: there was a checkpoint already; the slot stays the caller's
  uint32_t first_new = 0;  // pages of [first_new, position) are the tree's now
};

class RadixTree {
 public:
  explicit RadixTree(const TreeConfig& config);

  // `kv_limit`: no more KV than this many positions is wanted. `restore_limit`: no checkpoint
  // beyond it. Changes nothing.
  Match match(const CacheKey& key, uint32_t kv_limit, uint32_t restore_limit) const;
  // Locks what the match found (splitting the node it ended in), and counts the hit.
  Receipt acquire(uint64_t name_space, const Match& match);
  void release_state(Receipt& receipt);
  void lock_state(NodeId node);
  void unlock_state(NodeId node);
  void release(const Receipt& receipt, Freed& freed);
  // Locks the node's path and its checkpoint, if it has one. Not a hit.
  Receipt pin(NodeId node);

  // Plants `slot` at the end of `key`, whose length must be `position`, a multiple of the grid.
  // `pages` are the caller's, of [0, position): the tree takes those of the span it lacked.
  struct Plant {
    uint64_t name_space = 0;
    std::span<const KeyElement> key;
    uint32_t position = 0;
    std::span<const PageId> pages;
    SlotId slot;
    uint64_t ticket = 0;  // who computed it
    // A node that the caller locks and whose path `key` is known to begin with; none: not known.
    std::optional<NodeId> from = std::nullopt;
  };
  Inserted insert(const Plant& plant);
  // Moves a receipt's KV lock down to `node`, a descendant of the node that it locks.
  void lower(Receipt& receipt, NodeId node);
  // `ticket` planted a checkpoint at `tip`: the nearest one above it that another admission planted
  // was a session's tip and is so no more, nor is what that admission left beside the new path.
  // Forks are spared: where several went on, more may come.
  void supersede(NodeId tip, uint64_t ticket);
  // Drops checkpoints of the path to `tail`, shallowest first, until the cap holds; spares the
  // tail, forks, leaves and locked ones, so the limit is soft. Returns how many it dropped.
  uint32_t enforce_cap(NodeId tail, Freed& freed);

  // Takes the node's checkpoint (not locked). A leaf's KV goes with it, up to the nearest ancestor
  // with a checkpoint, a lock or another child.
  void evict(NodeId node, Freed& freed);
  // What evict(node) would free.
  struct Bundle {
    uint32_t slots = 0, pages = 0;
  };
  Bundle bundle(NodeId node) const;
  bool evictable(NodeId node) const;
  // Drops what `ticket` planted along `key` and nobody locks. Returns the number of checkpoints.
  uint32_t poison(const CacheKey& key, uint64_t ticket, Freed& freed);

  const RadixNode& node(NodeId id) const { return nodes_.at(id.index); }
  uint32_t nodes_max() const { return static_cast<uint32_t>(nodes_.size()); }
  void visit(const std::function<void(NodeId, const RadixNode&)>& see) const;
  std::optional<NodeId> root(uint64_t name_space) const;
  // Appends the pages of [0, end of `id`).
  void collect_pages(NodeId id, std::vector<PageId>& pages) const;
  std::vector<PrefixPoint> page_points(const RadixNode& node) const;  // one per page
  PrefixPoint checkpoint_point(const RadixNode& node) const {
    return {node.prefix, node.prefix, node.name_space, node.end};
  }
  // Position of the nearest checkpoint above `id`; 0: none.
  uint32_t checkpoint_above(NodeId id) const;
  // Nodes whose value for an eviction policy may have changed since the last call.
  std::vector<NodeId> take_changed();

  uint64_t tick() const { return tick_; }
  uint32_t cached_slots() const { return cached_slots_; }
  uint32_t cached_pages() const { return cached_pages_; }
  uint32_t evictable_slots() const { return cached_slots_ - locked_slots_; }
  uint32_t evictable_pages() const { return cached_pages_ - locked_pages_; }
  uint32_t node_count() const { return node_count_; }
  const TreeConfig& config() const { return config_; }
  // `receipts`: all that are outstanding.
  void check(std::span<const Receipt> receipts) const;

 private:
  struct Walk {
    NodeId node;
    uint32_t matched = 0;  // positions; inside `node` when below its end
  };
  RadixNode& at(NodeId id) { return nodes_[id.index]; }
  // From the end of `from`, whose path the key begins with.
  Walk walk(NodeId from, std::span<const KeyElement> key) const;
  std::optional<NodeId> child(const RadixNode& parent, std::span<const KeyElement> rest) const;
  uint64_t first_page_hash(std::span<const KeyElement> elements) const;
  bool fork(NodeId id) const;
  NodeId root_of(uint64_t name_space);
  NodeId make_node(const RadixNode& from);
  NodeId split(NodeId node, uint32_t position);  // returns the upper half
  NodeId grow_leaf(NodeId parent, const Plant& plant);
  void lock_path(NodeId node, std::optional<NodeId> up_to);
  void unlock_path(NodeId node);
  void set_checkpoint(NodeId node, std::optional<SlotId> slot);
  void prune(NodeId node, Freed& freed);  // upwards, while a node is of no use to anybody
  void remove_leaf(NodeId node, Freed& freed);
  void mark(NodeId node);
  void mark_below(NodeId node);

  TreeConfig config_;
  std::deque<RadixNode> nodes_;
  std::vector<uint32_t> free_nodes_;
  std::unordered_map<uint64_t, NodeId> roots_;
  std::vector<NodeId> changed_;
  uint64_t tick_ = 0;  // one per acquire and insert: the only clock there is
  uint32_t cached_slots_ = 0, cached_pages_ = 0, locked_slots_ = 0, locked_pages_ = 0;
  uint32_t node_count_ = 0;
};

}  // namespace memory
