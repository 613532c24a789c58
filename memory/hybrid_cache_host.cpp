// What leaves the device for host memory, and what comes back.
#include <algorithm>
#include <span>

#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"

namespace memory {

HybridCache::HostMatch HybridCache::match_host(const Open& request, const Match& match) {
  HostMatch best;
  if (host_.empty()) return best;
  const auto& [page_tokens, grid, cap] = tree_.config();
  const std::span<const KeyElement> key(request.key.elements);
  const uint32_t limit = std::min(request.restore_limit, request.positions);
  // Only what is deeper than the device's own is of interest: the names start there.
  uint32_t position = match.position;
  PrefixHash prefix =
      match.checkpoint ? tree_.node(*match.checkpoint).prefix : root_prefix(request.key.name_space);
  size_t usable = 0;  // of the pages found: those below the state
  while (position + page_tokens <= limit) {
    prefix = next_prefix(prefix, key.subspan(position, page_tokens));
    position += page_tokens;
    if (position > match.kv) {
      const auto page = host_.find(BlockKind::kPage, prefix);
      if (!page) break;
      best.pages.push_back(*page);
    }
    if (position % grid != 0) continue;
    const auto state = host_.find(BlockKind::kState, prefix);
    if (!state) continue;
    best.position = position;
    best.state = *state;
    usable = best.pages.size();
  }
  best.pages.resize(usable);
  if (best.position == 0) return best;
  // The state first: it is the first to go again, before the deepest page.
  host_.use_and_pin(best.state);
  for (auto page = best.pages.rbegin(); page != best.pages.rend(); ++page) host_.use_and_pin(*page);
  return best;
}

void HybridCache::release_host(const HostMatch& host) {
  if (host.position == 0) return;
  host_.unpin(host.state);
  for (const HostBlock page : host.pages) host_.unpin(page);
}

void HybridCache::stage_in(const HostMatch& host, const BlockPool::Blocks& blocks,
                           CacheReply& out) {
  if (host.position == 0) return;
  VERIFY(host.pages.size() <= blocks.pages.size());
  for (size_t i = 0; i < host.pages.size(); ++i) {
    const PageId page = blocks.pages[i];
    out.commands.push_back(StageIn{BlockKind::kPage, host.pages[i], page.index, page.generation});
  }
  const SlotId slot = blocks.slots.front();
  out.commands.push_back(StageIn{BlockKind::kState, host.state, slot.index, slot.generation});
  counters_.staged_in[static_cast<size_t>(BlockKind::kPage)] += host.pages.size();
  ++counters_.staged_in[static_cast<size_t>(BlockKind::kState)];
}

void HybridCache::stage_out(const Freed& freed, CacheReply& out) {
  if (!host_.enabled()) return;
  const auto copy = [&](BlockKind kind, uint32_t index, uint32_t generation,
                        const PrefixPoint& at) {
    const auto block = host_.insert(kind, at, out.commands);
    if (!block) return;
    out.commands.push_back(StageOut{kind, index, generation, *block});
    ++counters_.staged_out[static_cast<size_t>(kind)];
  };
  for (const auto& [id, at] : freed.slots) copy(BlockKind::kState, id.index, id.generation, at);
  // The deepest first, so that the shallowest are the last to go again.
  std::vector<const Freed::Page*> pages;
  for (const Freed::Page& page : freed.pages) pages.push_back(&page);
  std::stable_sort(pages.begin(), pages.end(),
                   [](const auto* a, const auto* b) { return a->at.position > b->at.position; });
  for (const Freed::Page* page : pages)
    copy(BlockKind::kPage, page->id.index, page->id.generation, page->at);
}

}  // namespace memory
