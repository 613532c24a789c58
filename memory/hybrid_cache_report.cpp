// What the cache tells about itself, and the proof that it is whole.
#include <algorithm>
#include <set>

#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"

namespace memory {

CacheCounters HybridCache::counters() const {
  CacheCounters now = counters_;
  now.state_moves = pool_->moves(BlockKind::kState);
  now.page_moves = pool_->moves(BlockKind::kPage);
  for (const BlockKind kind : {BlockKind::kState, BlockKind::kPage})
    now.host_evicted[static_cast<size_t>(kind)] = host_.evicted(kind);
  return now;
}

CacheOwners HybridCache::owners() const {
  auto owners = [](const KindCounts& count, uint32_t cached, uint32_t evictable) {
    return KindOwners{count.total,         count.free,    cached,
                      count.held - cached, count.pending, evictable};
  };
  const BlockCounts counts = pool_->counts();
  return {owners(counts.states, tree_.cached_slots(), tree_.evictable_slots()),
          owners(counts.pages, tree_.cached_pages(), tree_.evictable_pages()),
          {host_.bytes_max(), host_.bytes(), host_.count(BlockKind::kState),
           host_.count(BlockKind::kPage)}};
}

std::vector<SlotReport> HybridCache::slots() const {
  std::vector<SlotReport> all;
  auto add = [&](SlotId slot, SlotRole role, SequenceId sequence, NodeId node) {
    all.push_back({slot, pool_->physical(slot), role, sequence, node});
  };
  for (const auto& [ticket, admission] : ledger_.all()) {
    add(admission.working, SlotRole::kWorking, admission.sequence, {});
    for (const SlotId slot : admission.snapshots) {
      add(slot, SlotRole::kSnapshot, admission.sequence, {});
    }
  }
  tree_.visit([&](NodeId id, const RadixNode& node) {
    if (node.checkpoint) add(*node.checkpoint, SlotRole::kCheckpoint, {}, id);
  });
  std::sort(all.begin(), all.end(),
            [](const SlotReport& a, const SlotReport& b) { return a.physical < b.physical; });
  return all;
}

void HybridCache::check() const {
  pool_->check();
  tree_.check(ledger_.receipts());
  host_.check();
  std::set<SlotId> slots;
  std::set<PageId> cached, held;
  tree_.visit([&](NodeId, const RadixNode& node) {
    if (node.checkpoint) VERIFY(slots.insert(*node.checkpoint).second);
    for (const PageId page : node.pages) VERIFY(cached.insert(page).second);
  });
  const size_t cached_slots = slots.size();
  for (const auto& [ticket, admission] : ledger_.all()) {
    VERIFY(slots.insert(admission.working).second);
    for (const SlotId slot : admission.snapshots) VERIFY(slots.insert(slot).second);
    VERIFY(admission.pages.size() == admission.borrowed.size());
    std::vector<PageId> path;
    tree_.collect_pages(admission.receipt.node, path);
    for (size_t i = 0; i < admission.pages.size(); ++i) {
      if (admission.borrowed[i]) {
        VERIFY(i < path.size());
        VERIFY(path[i] == admission.pages[i]);
      } else {
        VERIFY(held.insert(admission.pages[i]).second);
        VERIFY(cached.count(admission.pages[i]) == 0);
      }
    }
  }
  for (const SlotId slot : slots) VERIFY(pool_->holds(slot));
  for (const PageId page : cached) VERIFY(pool_->holds(page));
  for (const PageId page : held) VERIFY(pool_->holds(page));
  VERIFY(cached_slots == tree_.cached_slots());
  VERIFY(cached.size() == tree_.cached_pages());
  const BlockCounts counts = pool_->counts();
  VERIFY(counts.states.held == slots.size());
  VERIFY(counts.pages.held == cached.size() + held.size());
  const CacheOwners now = owners();
  for (const KindOwners& kind : {now.states, now.pages}) {
    VERIFY(kind.free + kind.cached + kind.held + kind.pending == kind.total);
    VERIFY(kind.evictable <= kind.cached);
  }
}

}  // namespace memory
