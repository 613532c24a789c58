// What the cache tells about itself: counters for metrics, owners and explanations for a console.
// Plain values; nothing here changes the cache.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "memory/block_pool.hpp"
#include "memory/commands.hpp"
#include "memory/ids.hpp"
#include "memory/radix_node.hpp"

namespace memory {

// Why an admission did not restore a state at the end of all the KV that was cached.
enum class MissReason : uint8_t {
  kNone,          // it did, up to less than one grid step
  kCold,          // nothing of the key was cached
  kNoCheckpoint,  // KV was, but no checkpoint at the end of it
  kRestoreLimit,  // a deeper checkpoint lies beyond what the request may restore
  kNoRoom,        // the checkpoint had to be given up to admit the request at all
};
inline constexpr size_t kMissReasons = 5;

enum class EvictionReason : uint8_t { kRoom, kPathCap, kPoisoned };
inline constexpr size_t kEvictionReasons = 3;

struct CacheCounters {
  uint64_t opened = 0, refused = 0, grown = 0, grow_refused = 0;
  uint64_t restored = 0;               // admissions that began from a checkpoint
  uint64_t key_positions = 0;          // of all opened admissions
  uint64_t kv_positions = 0;           // of these: KV was in the tree
  uint64_t state_positions = 0;        // of these: not computed again
  uint64_t misses[kMissReasons] = {};  // by MissReason
  uint64_t branches = 0;               // branch targets named
  uint64_t snapshots_wished = 0, snapshots_granted = 0;
  uint64_t donated = 0, donated_twice = 0;  // twice: the tree had that checkpoint already
  uint64_t evicted_slots[kEvictionReasons] = {}, evicted_pages[kEvictionReasons] = {};
  uint64_t state_moves = 0, page_moves = 0;
  // Host memory; by BlockKind.
  uint64_t staged_out[2] = {}, staged_in[2] = {}, host_evicted[2] = {};
  uint64_t host_restored = 0;   // admissions that began from a state on the host
  uint64_t host_positions = 0;  // what they were spared beyond the deepest state on the device
  uint64_t host_lost = 0;       // copies whose bytes had changed
};

// How one admission fared; the latest few are kept.
struct OpenRecord {
  SequenceId sequence;
  uint64_t ticket = 0;
  uint32_t key_positions = 0, kv = 0, position = 0, deepest = 0, branch = 0;
  MissReason reason = MissReason::kNone;
  bool refused = false;
  uint32_t evicted_slots = 0, evicted_pages = 0;  // to make room for it
};

enum class SlotRole : uint8_t { kWorking, kSnapshot, kCheckpoint };

struct SlotReport {
  SlotId slot;
  uint32_t physical = 0;
  SlotRole role = SlotRole::kWorking;
  SequenceId sequence;  // of a working or snapshot slot
  NodeId node;          // of a checkpoint
};

// Owners of all blocks of one kind; free + cached + held + pending == total.
struct KindOwners {
  uint32_t total = 0, free = 0, cached = 0, held = 0, pending = 0;
  uint32_t evictable = 0;  // of the cached ones
};

struct HostOwners {
  uint64_t bytes_max = 0, bytes = 0;
  uint32_t states = 0, pages = 0;
};

struct CacheOwners {
  KindOwners states, pages;
  HostOwners host;
};

// ---- the whole cache as one value, for a console ----

struct NodeReport {
  NodeId node, parent;
  bool root = false, superseded = false;
  uint64_t name_space = 0;
  uint32_t begin = 0, end = 0, pages = 0;
  std::optional<SlotId> checkpoint;  // none: a root or a tombstone
  uint32_t kv_locks = 0, state_locks = 0, pins = 0;
  uint64_t hits = 0, kv_used = 0, state_used = 0;  // the last two in ticks of the tree
  uint32_t restores = 0;
  uint64_t kv_planter = 0, checkpoint_planter = 0;  // tickets
  std::vector<KeyElement> span;                     // its first elements, as many as were asked for
  std::string text;                                 // of `span`, where a tokenizer knows it
};

// What a sequence holds now.
struct AdmissionReport {
  uint64_t ticket = 0;
  SequenceId sequence;
  NodeId node;                  // its KV locks end here
  std::optional<NodeId> state;  // the checkpoint it is about to restore
  uint32_t own_pages = 0, borrowed_pages = 0, slots = 0;
};

struct ReportQuery {
  uint32_t span_elements = 8;  // of each node, from its first on
  static constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
};

struct CacheReport {
  uint32_t page_tokens = 0, grid = 0;
  uint64_t tick = 0;
  CacheCounters counters;
  CacheOwners owners;
  BlockPool::Layout layout;
  std::vector<SlotReport> slots;            // by physical place
  std::vector<NodeReport> nodes;            // by id
  std::vector<AdmissionReport> admissions;  // by ticket
  std::vector<OpenRecord> recent;           // the newest last
};

// ---- what a console may change ----

enum class NodeAction : uint8_t { kEvict, kPin, kUnpin };
struct NodeOrder {
  NodeAction action = NodeAction::kEvict;
  NodeId node;
};
struct NodeOutcome {
  NodeId node;
  uint32_t slots = 0, pages = 0;  // evicted, or held by the pin's path
  uint32_t pins = 0;              // of this node now
};

}  // namespace memory
