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

NodeReport HybridCache::report(NodeId id, const RadixNode& node, const ReportQuery& query) const {
  NodeReport report;
  report.node = id;
  report.parent = node.parent;
  report.root = node.root;
  report.superseded = node.superseded;
  report.name_space = node.name_space;
  report.begin = node.begin;
  report.end = node.end;
  report.pages = static_cast<uint32_t>(node.pages.size());
  report.checkpoint = node.checkpoint;
  report.kv_locks = node.kv_locks;
  report.state_locks = node.state_locks;
  const auto pins = pins_.find(id);
  report.pins = pins == pins_.end() ? 0 : static_cast<uint32_t>(pins->second.size());
  report.hits = node.hits;
  report.kv_used = node.kv_used;
  report.state_used = node.state_used;
  report.restores = node.restores;
  report.kv_planter = node.kv_planter;
  report.checkpoint_planter = node.checkpoint_planter;
  const auto shown = std::min<size_t>(node.span.size(), query.span_elements);
  report.span.assign(node.span.begin(), node.span.begin() + static_cast<long>(shown));
  return report;
}

CacheReport HybridCache::report(const ReportQuery& query) const {
  CacheReport all;
  all.page_tokens = tree_.config().page_tokens;
  all.grid = tree_.config().grid;
  all.tick = tree_.tick();
  all.counters = counters();
  all.owners = owners();
  all.layout = pool_->layout();
  all.slots = slots();
  all.nodes.reserve(tree_.node_count());
  tree_.visit([&](NodeId id, const RadixNode& node) {
    all.nodes.push_back(report(id, node, query));
  });
  for (const auto& [ticket, admission] : ledger_.all()) {
    const uint32_t own = admission.own_pages();
    all.admissions.push_back({ticket, admission.sequence, admission.receipt.node,
                              admission.receipt.state, own,
                              static_cast<uint32_t>(admission.pages.size()) - own,
                              static_cast<uint32_t>(admission.snapshots.size()) + 1});
  }
  all.recent.assign(recent_.begin(), recent_.end());
  return all;
}

std::vector<Receipt> HybridCache::receipts() const {
  std::vector<Receipt> all = ledger_.receipts();
  for (const auto& [node, pins] : pins_) all.insert(all.end(), pins.begin(), pins.end());
  return all;
}

void HybridCache::check() const {
  pool_->check();
  tree_.check(receipts());
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
