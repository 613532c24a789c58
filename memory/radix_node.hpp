// A node of the prefix tree: a span of positions, their KV pages, and at most one checkpoint, which
// belongs to the span's END and to nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/cache_messages.hpp"
#include "memory/ids.hpp"
#include "memory/prefix_hash.hpp"

namespace memory {

struct RadixNode {
  bool alive = false;
  bool root = false;
  uint64_t name_space = 0;
  NodeId parent;
  uint32_t begin = 0, end = 0;   // positions, multiples of the page
  std::vector<KeyElement> span;  // [end - begin]; never empty but at a root
  PrefixHash prefix;             // of [0, end)
  std::vector<PageId> pages;     // [(end - begin) / page_tokens]
  // By the hash of a child's first page; who looks a child up compares the elements too.
  std::unordered_multimap<uint64_t, NodeId> children;
  std::optional<SlotId> checkpoint;  // none in an inner node: a tombstone

  uint32_t kv_locks = 0;     // receipts whose path runs through here; a root has one more
  uint32_t state_locks = 0;  // receipts that will copy the checkpoint; <= kv_locks
  uint64_t kv_used = 0;      // tick of the last match or insert whose path ran through here
  uint64_t state_used = 0;   // tick at which the checkpoint was donated or last restored
  uint64_t hits = 0;         // matches that ran through the whole span
  uint32_t restores = 0;     // of this checkpoint
  // A later turn of the session that planted the checkpoint has a newer one: nobody is likely to
  // come back here. A second restore proves otherwise and lifts it.
  bool superseded = false;
  uint64_t kv_planter = 0, checkpoint_planter = 0;  // tickets of the admissions that computed them

  bool changed = false;  // in the list of changes since the eviction policy last looked
  bool leaf() const { return children.empty(); }
};

}  // namespace memory
