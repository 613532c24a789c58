// What is worth keeping when the server ends, the most valuable first.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "memory/hybrid_cache.hpp"

namespace memory {
namespace {

struct Ranked {
  SpillItem item;
  // The device's before the host's, which left it for want of worth; superseded tips last.
  uint32_t tier = 0;
  uint64_t used = 0;
  bool operator<(const Ranked& other) const {
    if (tier != other.tier) return tier < other.tier;
    if (used != other.used) return used > other.used;
    return item.at.prefix < other.item.at.prefix;
  }
};

using ByPrefix = std::unordered_map<PrefixHash, Ranked>;

// The pages that `state` needs and `written` lacks, deepest first; none: some are missing.
std::optional<std::vector<SpillItem>> missing_pages(const PrefixPoint& state, const ByPrefix& pages,
                                                    const std::unordered_set<PrefixHash>& written,
                                                    uint32_t page_tokens) {
  std::vector<SpillItem> chain;
  PrefixHash needs = state.needs;
  for (uint32_t end = state.position; end > 0 && !written.count(needs); end -= page_tokens) {
    const auto page = pages.find(needs);
    if (page == pages.end()) return std::nullopt;
    chain.push_back(page->second.item);
    needs = page->second.item.at.needs;
  }
  return chain;
}

}  // namespace

void HybridCache::spill(uint64_t deadline_ns, CacheReply& out) const {
  ByPrefix states, pages;
  for (const auto& [block, copy] : host_.copies()) {
    ByPrefix& of_kind = copy.kind == BlockKind::kState ? states : pages;
    of_kind[copy.at.prefix] = {{copy.kind, copy.at, block, 0, 0}, 1, copy.used};
  }
  tree_.visit([&](NodeId, const RadixNode& node) {
    const auto points = tree_.page_points(node);
    for (size_t i = 0; i < points.size(); ++i) {
      const PageId page = node.pages[i];
      pages[points[i].prefix] = {
          {BlockKind::kPage, points[i], {}, page.index, page.generation}, 0, 0};
    }
    if (!node.checkpoint) return;
    const SlotId slot = *node.checkpoint;
    states[node.prefix] = {
        {BlockKind::kState, tree_.checkpoint_point(node), {}, slot.index, slot.generation},
        node.superseded ? 2u : 0u,
        node.state_used};
  });
  std::vector<Ranked> order;
  for (const auto& [prefix, state] : states) order.push_back(state);
  std::sort(order.begin(), order.end());

  Spill spill{{}, deadline_ns};
  uint64_t bytes = 0;
  std::unordered_set<PrefixHash> written;
  for (const Ranked& state : order) {
    const auto chain = missing_pages(state.item.at, pages, written, tree_.config().page_tokens);
    if (!chain) continue;
    const uint64_t more =
        host_.size(BlockKind::kState) + chain->size() * host_.size(BlockKind::kPage);
    if (bytes + more > host_.bytes_max()) continue;  // nobody could read it back
    bytes += more;
    for (auto page = chain->rbegin(); page != chain->rend(); ++page) {
      written.insert(page->at.prefix);
      spill.items.push_back(*page);
    }
    spill.items.push_back(state.item);
  }
  out.commands.push_back(std::move(spill));
}

}  // namespace memory
