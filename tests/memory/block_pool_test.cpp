#include "memory/block_pool.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "arena_model.hpp"

using memory::BlockKind;
using memory::BlockPool;
using memory::PageId;
using memory::SlotId;

namespace {

constexpr memory::ArenaConfig kArena{6400, 640, 128};

struct Pool {
  explicit Pool(std::unique_ptr<BlockPool> made) : pool(std::move(made)), arena(*pool) {}
  std::optional<BlockPool::Blocks> acquire(uint64_t slots, uint64_t pages) {
    std::vector<memory::MemoryCommand> commands;
    auto got = pool->acquire({slots, pages}, commands);
    arena.run(commands);
    last = std::move(commands);
    return got;
  }
  void settle() {
    last.clear();
    pool->settle(last);
    arena.run(last);
    pool->check();
  }
  std::unique_ptr<BlockPool> pool;
  tests::ArenaModel arena;
  std::vector<memory::MemoryCommand> last;
};

}  // namespace

TEST_CASE("a unified pool gives the whole arena to either kind", "[memory]") {
  Pool unified(memory::make_unified_pool(kArena));
  REQUIRE(unified.pool->counts().states.free == 10);
  REQUIRE(unified.pool->counts().pages.free == 50);
  const auto all = unified.acquire(0, 50);
  REQUIRE(all);
  CHECK(unified.pool->counts().states.free == 0);
  CHECK_FALSE(unified.acquire(1, 0));
  CHECK(unified.last.empty());  // a failed acquire changes nothing
  for (size_t i = 0; i < 5; ++i) unified.pool->release(all->pages[10 * i]);
  unified.settle();
  CHECK(unified.last.size() == 5);  // five holes, filled from the edge
  CHECK(unified.pool->counts().states.free == 1);
  CHECK(unified.acquire(1, 0));
}

TEST_CASE("a split pool keeps its kinds apart, whatever the sizes", "[memory]") {
  for (uint64_t state_bytes : {64u, 100u, 640u}) {
    for (uint64_t page_bytes : {1u, 8u, 63u, 64u, 100u, 640u}) {
      for (uint64_t arena_bytes = 2048; arena_bytes < 2048 + 64; arena_bytes += 7) {
        for (const double share : {0.1, 0.35, 0.6, 0.9}) {
          CAPTURE(state_bytes, page_bytes, arena_bytes, share);
          const auto pool = memory::make_split_pool({arena_bytes, state_bytes, page_bytes}, share);
          const BlockPool::Region states = pool->state_region(), pages = pool->page_region();
          CHECK(states.offset + states.blocks * states.block_bytes <= pages.offset);
          CHECK(pages.offset + pages.blocks * pages.block_bytes <= arena_bytes);
          CHECK(pages.offset % 64 == 0);
          CHECK(pages.blocks > 0);
        }
      }
    }
  }
}

TEST_CASE("a released block is filled from its own kind's edge, and the moved id stays",
          "[memory]") {
  Pool unified(memory::make_unified_pool(kArena));
  const auto got = unified.acquire(4, 0);
  REQUIRE(got);
  unified.arena.write(got->slots[3], 77);
  unified.pool->release(got->slots[1]);
  unified.settle();
  REQUIRE(unified.last.size() == 1);
  const auto move = std::get<memory::Move>(unified.last[0]);
  CHECK(SlotId{move.id, move.generation} == got->slots[3]);
  CHECK(move.from == 3);
  CHECK(move.to == 1);
  CHECK(unified.arena.read(got->slots[3]) == 77);
  unified.pool->release(got->slots[2]);  // now the edge itself: nothing to move
  unified.settle();
  CHECK(unified.last.empty());
}

TEST_CASE("a pinned edge leaves the hole pending until the pin falls", "[memory]") {
  Pool unified(memory::make_unified_pool(kArena));
  const auto got = unified.acquire(3, 0);
  REQUIRE(got);
  const memory::Pin pin = unified.pool->pin(got->slots[2]);
  unified.pool->release(got->slots[0]);
  unified.settle();
  CHECK(unified.last.empty());
  CHECK(unified.pool->counts().states.pending == 1);
  CHECK(unified.pool->counts().states.held == 2);
  CHECK(unified.pool->counts().states.free == 7);
  CHECK_FALSE(unified.pool->fits({0, 36}));  // the hole is lost to pages (three states stay) ...
  CHECK(unified.pool->fits({8, 0}));         // ... but not to states
  unified.pool->unpin(pin);
  unified.settle();
  CHECK(unified.last.size() == 1);
  CHECK(unified.pool->counts().states.pending == 0);
  CHECK(unified.pool->fits({0, 40}));
}

TEST_CASE("a block released while a copy reads it is handed out only after its pin fell",
          "[memory]") {
  Pool unified(memory::make_unified_pool({2 * 640 + 128, 640, 128}));
  const auto got = unified.acquire(2, 1);
  REQUIRE(got);
  const memory::Pin pin = unified.pool->pin(got->slots[0]);
  unified.pool->release(got->slots[0]);
  unified.settle();
  CHECK(unified.pool->counts().states.pending == 1);
  CHECK_FALSE(unified.acquire(1, 0));
  unified.pool->unpin(pin);
  CHECK(unified.acquire(1, 0));
}

TEST_CASE("bytes are zeroed exactly when they last belonged to the other kind", "[memory]") {
  Pool unified(memory::make_unified_pool({1280, 640, 128}));
  auto zeros = [&] {
    int count = 0;
    for (const auto& command : unified.last) {
      const auto* bind = std::get_if<memory::Bind>(&command);
      count += bind != nullptr && bind->zero ? 1 : 0;
    }
    return count;
  };
  auto pages = unified.acquire(0, 7);  // never used before: bytes [384, 1280)
  REQUIRE(pages);
  CHECK(zeros() == 0);
  for (const PageId page : pages->pages) unified.pool->release(page);
  unified.settle();
  auto slot = unified.acquire(1, 0);  // [0, 640) reaches into what were pages
  REQUIRE(slot);
  CHECK(zeros() == 1);
  unified.pool->release(slot->slots[0]);
  unified.settle();
  slot = unified.acquire(1, 0);  // its own kind's bytes
  REQUIRE(slot);
  CHECK(zeros() == 0);
  unified.pool->release(slot->slots[0]);
  unified.settle();
  pages = unified.acquire(0, 10);  // five of them pages all along
  REQUIRE(pages);
  CHECK(zeros() == 5);
}

TEST_CASE("making room compacts the other kind first, in an order that a worker can follow",
          "[memory]") {
  Pool unified(memory::make_unified_pool({1280, 640, 128}));
  const auto pages = unified.acquire(0, 10);
  REQUIRE(pages);
  for (size_t i = 0; i < 10; ++i) unified.arena.write(pages->pages[i], 100 + i);
  for (size_t i = 0; i < 5; ++i) unified.pool->release(pages->pages[2 * i]);
  const auto slot = unified.acquire(1, 0);  // without settle(): acquire makes the room
  REQUIRE(slot);
  CHECK(unified.last.size() == 4);  // pages 9, 7, 5 into the holes, then the bind
  CHECK(std::holds_alternative<memory::Bind>(unified.last.back()));
  for (size_t i = 1; i < 10; i += 2) CHECK(unified.arena.read(pages->pages[i]) == 100 + i);
}

TEST_CASE("a release and an acquire of one message cost no move", "[memory]") {
  Pool unified(memory::make_unified_pool(kArena));
  const auto got = unified.acquire(0, 8);
  REQUIRE(got);
  for (size_t i = 0; i < 4; ++i) unified.pool->release(got->pages[i]);
  REQUIRE(unified.acquire(0, 4));
  unified.settle();
  CHECK(unified.last.empty());
  CHECK(unified.pool->moves(BlockKind::kPage) == 0);
}

TEST_CASE("a split pool keeps its border and never moves", "[memory]") {
  for (const double share : {0.01, 0.3, 0.5, 0.99}) {
    CAPTURE(share);
    Pool split(memory::make_split_pool(kArena, share));
    const auto counts = split.pool->counts();
    CHECK(counts.states.total >= 1);
    CHECK(counts.pages.total >= 1);
    CHECK(counts.states.total * 640 + counts.pages.total * 128 <= kArena.arena_bytes);
    CHECK(split.pool->pages_beside(1) == counts.pages.total);
    const auto got = split.acquire(counts.states.total, counts.pages.total);
    REQUIRE(got);
    CHECK_FALSE(split.acquire(1, 0));
    CHECK_FALSE(split.acquire(0, 1));
    split.pool->release(got->slots[0]);
    split.settle();
    CHECK(split.last.empty());
    CHECK(split.pool->counts().states.free == 1);
    CHECK_FALSE(split.acquire(0, 1));
    CHECK(split.acquire(1, 0));
  }
}

TEST_CASE("an arena too small for one slot and one page is refused with its numbers", "[memory]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(memory::make_unified_pool({100, 100, 36}),
                    Contains("100 bytes is too small") && Contains("need 164"));
  CHECK_THROWS_WITH(memory::make_unified_pool({1000, 0, 36}), Contains("state_bytes 0"));
  CHECK_THROWS_WITH(memory::make_split_pool({1000, 10, 36}, 1.5),
                    Contains("state_share must lie between 0 and 1"));
  for (const double share : {0.001, 0.5, 0.999}) {
    const auto least = memory::make_split_pool({164, 100, 36}, share);
    CHECK(least->counts().states.total == 1);
    CHECK(least->counts().pages.total == 1);
  }
}

// The arena model runs every command on real cells: what a holder wrote is what it reads, whatever
// moved, and no two blocks ever share a cell.
TEST_CASE("a pool keeps every holder's bytes for any history", "[memory][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const memory::ArenaConfig config{rng() % 2 == 0 ? 6400u : 6500u, 640,
                                   rng() % 2 == 0 ? 128u : 64u};
  Pool pool(seed % 3 == 0 ? memory::make_split_pool(config, 0.5)
                          : memory::make_unified_pool(config));
  std::map<SlotId, uint64_t> slots;
  std::map<PageId, uint64_t> pages;
  std::vector<memory::Pin> pins;
  uint64_t tag = 1;
  for (int step = 0; step < 500; ++step) {
    const auto what = rng() % 8;
    if (what < 3) {
      const uint64_t more_slots = rng() % 3, more_pages = rng() % 12;
      const bool fits = pool.pool->fits({more_slots, more_pages});
      const auto got = pool.acquire(more_slots, more_pages);
      REQUIRE(got.has_value() == fits);
      if (got) {
        for (const SlotId slot : got->slots) pool.arena.write(slot, slots[slot] = tag++);
        for (const PageId page : got->pages) pool.arena.write(page, pages[page] = tag++);
      }
    } else if (what < 6) {
      for (auto it = slots.begin(); it != slots.end();) {
        if (rng() % 3 != 0) {
          ++it;
          continue;
        }
        pool.pool->release(it->first);
        it = slots.erase(it);
      }
      for (auto it = pages.begin(); it != pages.end();) {
        if (rng() % 3 != 0) {
          ++it;
          continue;
        }
        pool.pool->release(it->first);
        it = pages.erase(it);
      }
    } else if (what == 6 && pins.size() < 3) {
      if (rng() % 2 == 0 && !slots.empty()) pins.push_back(pool.pool->pin(slots.begin()->first));
      if (rng() % 2 == 0 && !pages.empty()) pins.push_back(pool.pool->pin(pages.rbegin()->first));
    } else if (!pins.empty()) {
      pool.pool->unpin(pins.back());
      pins.pop_back();
    }
    pool.settle();
    const auto counts = pool.pool->counts();
    REQUIRE(counts.states.held == slots.size());
    REQUIRE(counts.pages.held == pages.size());
    if (pins.empty()) {
      REQUIRE(counts.states.pending == 0);
      REQUIRE(counts.pages.pending == 0);
      REQUIRE(pool.pool->fits({counts.states.free, 0}));
      REQUIRE_FALSE(pool.pool->fits({counts.states.free + 1, 0}));
      REQUIRE(pool.pool->fits({0, counts.pages.free}));
      REQUIRE_FALSE(pool.pool->fits({0, counts.pages.free + 1}));
    }
    for (const auto& [slot, value] : slots) REQUIRE(pool.arena.read(slot) == value);
    for (const auto& [page, value] : pages) REQUIRE(pool.arena.read(page) == value);
  }
}
