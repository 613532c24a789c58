#include "memory/block_pool.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/base/verify.hpp"

namespace memory {
namespace {

constexpr uint64_t kRegionAlign = 64;  // bytes: one cache line, and the widest vector load

uint64_t align_down(uint64_t bytes) { return bytes / kRegionAlign * kRegionAlign; }
uint64_t align_up(uint64_t bytes) { return align_down(bytes + kRegionAlign - 1); }

uint32_t clamp_count(uint64_t blocks) {
  return static_cast<uint32_t>(std::min<uint64_t>(blocks, std::numeric_limits<int32_t>::max()));
}

BlockPool::Region states_in(const ArenaConfig& config, std::optional<uint64_t> border) {
  const uint64_t room = border.value_or(config.arena_bytes);
  return {0, config.state_bytes, clamp_count(room / config.state_bytes)};
}

// Ends at the arena's end (up to the alignment), so that page 0 counted from there is as far from
// the states as can be.
BlockPool::Region pages_in(const ArenaConfig& config, std::optional<uint64_t> border) {
  const uint64_t room = config.arena_bytes - align_up(border.value_or(0));
  const uint32_t blocks = clamp_count(room / config.page_bytes);
  return {align_down(config.arena_bytes - blocks * config.page_bytes), config.page_bytes, blocks};
}

void check_config(const ArenaConfig& config) {
  if (config.state_bytes == 0 || config.page_bytes == 0) {
    throw std::invalid_argument("a slot and a page must have a size: got state_bytes " +
                                std::to_string(config.state_bytes) + ", page_bytes " +
                                std::to_string(config.page_bytes));
  }
  const uint64_t least = align_up(config.state_bytes) + config.page_bytes;
  if (config.arena_bytes < least) {
    throw std::invalid_argument(
        "an arena of " + std::to_string(config.arena_bytes) + " bytes is too small: one slot (" +
        std::to_string(config.state_bytes) + " bytes) and one page (" +
        std::to_string(config.page_bytes) + " bytes) need " + std::to_string(least));
  }
}

}  // namespace

BlockPool::BlockPool(const ArenaConfig& config, std::optional<uint64_t> border)
    : arena_bytes_(config.arena_bytes),
      border_(border),
      state_region_(states_in(config, border)),
      page_region_(pages_in(config, border)),
      states_(BlockKind::kState, state_region_.blocks, false),
      pages_(BlockKind::kPage, page_region_.blocks, true),
      page_mark_(config.arena_bytes) {
  VERIFY(state_region_.blocks > 0);
  VERIFY(page_region_.blocks > 0);
}

bool BlockPool::fits(BlockWant want, BlockWant yield) const {
  const uint64_t slots = states_.extent_with(want.slots, yield.slots);
  const uint64_t pages = pages_.extent_with(want.pages, yield.pages);
  if (slots > states_.places_max() || pages > pages_.places_max()) return false;
  return !unified() || states_end(slots) <= pages_begin(pages);
}

bool BlockPool::edge_is_free(const BlockSide& own) const {
  if (own.extent() == own.places_max()) return false;
  if (!unified()) return true;
  const uint64_t slots = states_.extent() + (&own == &states_ ? 1 : 0);
  const uint64_t pages = pages_.extent() + (&own == &pages_ ? 1 : 0);
  return states_end(slots) <= pages_begin(pages);
}

// The block just taken beyond the edge: does it cover bytes of the other kind?
bool BlockPool::must_zero(BlockKind kind) {
  if (kind == BlockKind::kState) {
    const uint64_t end = states_end(states_.extent());
    const bool dirty = end > page_mark_;
    state_mark_ = std::max(state_mark_, end);
    page_mark_ = std::max(page_mark_, end);
    return dirty;
  }
  const uint64_t begin = pages_begin(pages_.extent());
  const bool dirty = begin < state_mark_;
  state_mark_ = std::min(state_mark_, begin);
  page_mark_ = std::min(page_mark_, begin);
  return dirty;
}

Bind BlockPool::take(BlockSide& own, BlockSide& other, std::vector<MemoryCommand>& commands) {
  if (own.open_holes() > 0) return own.acquire_hole();
  if (!edge_is_free(own)) other.compact(commands);
  VERIFY(edge_is_free(own));
  Bind bind = own.acquire_edge();
  bind.zero = must_zero(bind.kind);
  return bind;
}

std::optional<BlockPool::Blocks> BlockPool::acquire(BlockWant want,
                                                    std::vector<MemoryCommand>& commands) {
  if (!fits(want)) return std::nullopt;
  Blocks blocks;
  blocks.slots.reserve(want.slots);
  blocks.pages.reserve(want.pages);
  for (uint64_t i = 0; i < want.slots; ++i) {
    const Bind bind = take(states_, pages_, commands);
    blocks.slots.push_back({bind.id, bind.generation});
    commands.push_back(bind);
  }
  for (uint64_t i = 0; i < want.pages; ++i) {
    const Bind bind = take(pages_, states_, commands);
    blocks.pages.push_back({bind.id, bind.generation});
    commands.push_back(bind);
  }
  return blocks;
}

void BlockPool::release(SlotId slot) { states_.release(slot.index, slot.generation); }
void BlockPool::release(PageId page) { pages_.release(page.index, page.generation); }

void BlockPool::settle(std::vector<MemoryCommand>& commands) {
  if (!unified()) return;  // nobody else can use what a hole would leave free
  states_.compact(commands);
  pages_.compact(commands);
}

void BlockPool::unpin(Pin pin) { (pin.kind == BlockKind::kState ? states_ : pages_).unpin(pin); }

BlockCounts BlockPool::counts() const {
  auto count = [&](const BlockSide& own, uint64_t block_bytes) {
    KindCounts now;
    now.held = own.held();
    if (unified()) {
      const uint64_t gap = pages_begin(pages_.extent()) - states_end(states_.extent());
      now.free = std::min(clamp_count(gap / block_bytes), own.places_max() - own.extent());
      now.pending = own.open_holes() + own.read_holes();
    } else {
      now.pending = own.read_holes();
      now.free = own.places_max() - now.held - now.pending;
    }
    now.total = now.free + now.held + now.pending;
    return now;
  };
  return {count(states_, state_region_.block_bytes), count(pages_, page_region_.block_bytes)};
}

uint64_t BlockPool::pages_beside(uint64_t slots) const {
  if (slots > states_.places_max()) return 0;
  if (!unified()) return pages_.places_max();
  const uint64_t end = page_region_.offset + page_region_.blocks * page_region_.block_bytes;
  return std::min<uint64_t>((end - states_end(slots)) / page_region_.block_bytes,
                            pages_.places_max());
}

BlockPool::Layout BlockPool::layout() const {
  auto draw = [](const BlockSide& own, const Region& region) {
    return SideLayout{region, own.extent(), own.hole_places(), own.pinned_places()};
  };
  return {arena_bytes_, unified(), draw(states_, state_region_), draw(pages_, page_region_)};
}

void BlockPool::check() const {
  states_.check();
  pages_.check();
  VERIFY(states_end(states_.extent()) <= pages_begin(pages_.extent()));
  VERIFY(state_mark_ <= page_mark_);
  VERIFY(states_end(states_.extent()) <= state_mark_);
  VERIFY(page_mark_ <= pages_begin(pages_.extent()) || pages_.extent() == 0);
}

std::unique_ptr<BlockPool> make_unified_pool(const ArenaConfig& config) {
  check_config(config);
  return std::make_unique<BlockPool>(config, std::nullopt);
}

std::unique_ptr<BlockPool> make_split_pool(const ArenaConfig& config, double state_share) {
  check_config(config);
  if (!(state_share > 0.0 && state_share < 1.0)) {
    throw std::invalid_argument("state_share must lie between 0 and 1, got " +
                                std::to_string(state_share));
  }
  const auto share = static_cast<uint64_t>(static_cast<double>(config.arena_bytes) * state_share);
  const uint64_t slots_most =
      align_down(config.arena_bytes - config.page_bytes) / config.state_bytes;
  const uint64_t slots = std::clamp<uint64_t>(share / config.state_bytes, 1, slots_most);
  return std::make_unique<BlockPool>(config, slots * config.state_bytes);
}

}  // namespace memory
