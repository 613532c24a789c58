#include "memory/cache_core.hpp"

#include <unordered_set>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {

CacheCore::CacheCore(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {
  VERIFY(pool_ != nullptr);
}

CacheAnswer CacheCore::handle(const Reserve& request) {
  Grant grant{request.sequence, request.ticket, {}, {}, {}};
  auto blocks = pool_->acquire(request.slots, request.pages, grant.binds);
  if (!blocks) return Refusal{request.sequence, request.ticket};
  VERIFY(grant.binds.size() == size_t{request.slots} + request.pages);
  Held& held = held_[request.sequence];
  held.slots.insert(held.slots.end(), blocks->slots.begin(), blocks->slots.end());
  held.pages.insert(held.pages.end(), blocks->pages.begin(), blocks->pages.end());
  grant.slots = std::move(blocks->slots);
  grant.pages = std::move(blocks->pages);
  return grant;
}

void CacheCore::handle(const Release& request) {
  if (const auto found = held_.find(request.sequence); found != held_.end()) {
    for (const SlotId slot : found->second.slots) pool_->release(slot);
    for (const PageId page : found->second.pages) pool_->release(page);
    held_.erase(found);
  }
}

PoolCounts CacheCore::counts() const { return pool_->counts(); }

size_t CacheCore::owner_count() const { return held_.size(); }

void CacheCore::check() const {
  std::unordered_set<uint32_t> slots, pages;
  for (const auto& [sequence, held] : held_) {
    for (const SlotId slot : held.slots) VERIFY(slots.insert(slot.index).second);
    for (const PageId page : held.pages) VERIFY(pages.insert(page.index).second);
  }
  const PoolCounts now = pool_->counts();
  VERIFY(now.states.held == slots.size());
  VERIFY(now.pages.held == pages.size());
  VERIFY(now.states.free + now.states.held == now.states.total);
  VERIFY(now.pages.free + now.pages.held == now.pages.total);
}

}  // namespace memory
