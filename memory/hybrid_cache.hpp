// The cache manager's core: one pool, one prefix tree, and the admissions that hold the rest. Plain
// and deterministic: requests in, answers and commands out. Bytes are moved only by the worker.
//
// With host memory, what is evicted for room goes there, and comes back for whoever asks for it.
//
// Invariant, per kind, after every message: free + cached + held by admissions + pending == total;
// no block has two owners; the tree's locks are exactly the receipts of the open admissions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "kernels/base/result.hpp"
#include "memory/block_pool.hpp"
#include "memory/cache_ledger.hpp"
#include "memory/cache_messages.hpp"
#include "memory/cache_report.hpp"
#include "memory/eviction.hpp"
#include "memory/host_store.hpp"
#include "memory/move_journal.hpp"
#include "memory/move_log.hpp"
#include "memory/radix_tree.hpp"

namespace memory {

class HybridCache {
 public:
  HybridCache(const TreeConfig& config, std::unique_ptr<BlockPool> pool,
              std::unique_ptr<EvictionPolicy> policy, uint64_t host_bytes = 0);

  // Appends to `out`. The rules beyond those of cache_messages.hpp:
  // - Nothing an Open is about to use is evicted for it. When the checkpoint itself is what keeps
  //   it from fitting, it is given up and the request starts from a cleared slot: who could be
  //   admitted alone is never refused for what is cached.
  // - Wished snapshot slots are granted after everything else, by eviction too, and stop at the
  //   first that finds no room.
  // - After a Donate at `position` the admission's pages below it are read only, wherever they lie.
  //   A page stays the admission's own where the tree had that span already.
  // - Behind what the tree has of a key, the host's pages are searched. The deepest state that the
  //   two together make usable wins; a copy on the host is taken only when it is deeper than every
  //   checkpoint on the device. What is staged in is the admission's own until its next donation.
  void handle(const CacheRequest& request, CacheReply& out);
  // Evicts everything that nobody uses, and the host's copies too. Appends to `out`.
  void flush(CacheReply& out);
  // Has everything cached that a later process could use written to a file: whole prefixes, the
  // most valuable first, no more than host memory holds. Appends one Spill to `out`.
  void spill(uint64_t deadline_ns, CacheReply& out) const;
  // A copy from such a file, as HostStore::adopt() takes it; its bytes go to the worker's host
  // memory under the name that comes back.
  std::optional<HostBlock> adopt(BlockKind kind, const PrefixPoint& at) {
    return host_.adopt(kind, at);
  }

  // By hand. Errors name the node and why it cannot be. A pin keeps the node's path and its
  // checkpoint from eviction until as many unpins; all pins together hold at most half the arena.
  kernels::Result<NodeOutcome> change(const NodeOrder& order, CacheReply& out);

  // No Open with more positions can ever be granted; with as many, one can when it is alone.
  uint32_t positions_max() const;
  // Slots of an otherwise empty pool; a running sequence needs one.
  uint32_t slots_max() const { return pool_->state_region().blocks; }

  // ---- looking inside ----
  const BlockPool& pool() const { return *pool_; }
  const RadixTree& tree() const { return tree_; }
  const CacheLedger& ledger() const { return ledger_; }
  const HostStore& host() const { return host_; }
  MoveGeometry move_geometry() const {
    return {tree_.config().page_tokens, pool_->state_region(), pool_->page_region()};
  }
  CacheCounters counters() const;
  CacheOwners owners() const;
  std::vector<SlotReport> slots() const;                            // by physical place
  const std::deque<OpenRecord>& recent() const { return recent_; }  // the newest last
  CacheReport report(const ReportQuery& query) const;
  void check() const;  // VERIFYs the invariant; called after every message in debug builds

 private:
  // The deepest state on the host beyond the match's, and the pages that it needs besides the
  // tree's. What it names is pinned until release_host().
  struct HostMatch {
    uint32_t position = 0;  // 0: nothing of use
    HostBlock state;
    std::vector<HostBlock> pages;  // behind the tree's
  };

  void on(const Open& request, CacheReply& out);
  void on(const Grow& request, CacheReply& out);
  void on(const Restored& request, CacheReply& out);
  void on(const Donate& request, CacheReply& out);
  void on(const Drop& request, CacheReply& out);
  void on(const Forget& request, CacheReply& out);

  // By eviction; false: nothing was evicted that could have helped.
  bool make_room(BlockWant want, CacheReply& out);
  // What the policy gives up first. False: nothing relieves the shortage.
  bool evict_one(Shortage shortage, CacheReply& out, FreeReason reason = FreeReason::kRoom);
  std::optional<SlotId> acquire_slot(CacheReply& out);
  // What leaves for want of room goes to the host before its blocks are free. `from`: a node they
  // were under.
  void give_back(Freed& freed, FreeReason reason, NodeId from, CacheReply& out);
  // To the pool, and on record. `last`: whose it was.
  template <class Id>
  void free(BlockKind kind, Id id, FreeReason reason, MoveRecord last);
  void free_own(SlotId slot, SequenceId sequence, FreeReason reason);
  void donate_records(const Donate& request, const Inserted& inserted, const Admission& admission);
  Admission admit(const Open& request, const Match& match, const Receipt& receipt,
                  const HostMatch& host, CacheReply& out);
  void refuse(const Open& request, const Receipt& receipt, const OpenRecord& record,
              CacheReply& out);
  void count_open(const Open& request, const Match& match, bool gave_up, OpenRecord record);
  void record(const OpenRecord& record);
  kernels::Result<NodeOutcome> evict_node(NodeId node, CacheReply& out);
  kernels::Result<NodeOutcome> pin(NodeId node, CacheReply& out);
  kernels::Result<NodeOutcome> unpin(NodeId node, CacheReply& out);
  BlockWant pinned_blocks() const;
  NodeReport report(NodeId id, const RadixNode& node, const ReportQuery& query) const;
  std::vector<Receipt> receipts() const;  // of admissions and pins

  // ---- host memory (hybrid_cache_host.cpp) ----
  HostMatch match_host(const Open& request, const Match& match);
  void release_host(const HostMatch& host);
  void stage_in(const HostMatch& host, const BlockPool::Blocks& blocks, CacheReply& out);
  void stage_out(const Freed& freed, CacheReply& out);

  RadixTree tree_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<EvictionPolicy> policy_;
  CacheLedger ledger_;
  HostStore host_;
  CacheCounters counters_;
  MoveJournal journal_;
  std::map<NodeId, std::vector<Receipt>> pins_;  // one receipt a pin
  std::deque<OpenRecord> recent_;
};

}  // namespace memory
