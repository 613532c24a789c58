#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "memory/pool.hpp"

namespace {

memory::PoolConfig blocks(uint32_t slots, uint32_t pages) {
  memory::PoolConfig config;
  config.state_bytes = 128;
  config.page_bytes = 64;
  config.arena_bytes = uint64_t{slots} * 128 + uint64_t{pages} * 64;
  config.state_share = 0.99;
  config.max_slots = slots;
  return config;
}

}  // namespace

TEST_CASE("a split pool agrees with a set of live blocks for any history", "[memory][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto pool = memory::make_split_pool(blocks(5, 9));
  using Key = std::pair<memory::BlockKind, uint32_t>;
  std::map<Key, memory::Bind> live;  // the oracle, by virtual id
  std::set<Key> physical;            // in use
  std::map<Key, uint32_t> newest;    // last generation seen, by virtual id
  std::vector<memory::Pool::Blocks> held;
  for (int step = 0; step < 400; ++step) {
    const auto counts = pool->counts();
    if (rng() % 2 == 0) {
      const auto slots = static_cast<uint32_t>(rng() % 3), pages = static_cast<uint32_t>(rng() % 5);
      std::vector<memory::Bind> binds;
      auto got = pool->acquire(slots, pages, binds);
      REQUIRE(got.has_value() == (slots <= counts.states.free && pages <= counts.pages.free));
      if (!got) {
        REQUIRE(binds.empty());
        continue;
      }
      REQUIRE(got->slots.size() == slots);
      REQUIRE(got->pages.size() == pages);
      REQUIRE(binds.size() == slots + pages);
      for (size_t i = 0; i < binds.size(); ++i) {
        const memory::Bind& bind = binds[i];
        const Key key{bind.kind, bind.id};
        REQUIRE(bind.kind == (i < slots ? memory::BlockKind::kState : memory::BlockKind::kPage));
        if (i < slots) REQUIRE(got->slots[i] == memory::SlotId{bind.id, bind.generation});
        if (i >= slots) REQUIRE(got->pages[i - slots] == memory::PageId{bind.id, bind.generation});
        REQUIRE(bind.physical < (i < slots ? 5u : 9u));
        REQUIRE(live.emplace(key, bind).second);
        REQUIRE(physical.insert({bind.kind, bind.physical}).second);
        REQUIRE(bind.generation > newest[key]);  // also: the first generation is not 0
        newest[key] = bind.generation;
      }
      held.push_back(std::move(*got));
    } else if (!held.empty()) {
      std::swap(held[rng() % held.size()], held.back());
      auto drop = [&](memory::BlockKind kind, uint32_t id) {
        physical.erase({kind, live.at({kind, id}).physical});
        live.erase({kind, id});
      };
      for (const auto slot : held.back().slots)
        pool->release(slot), drop(memory::BlockKind::kState, slot.index);
      for (const auto page : held.back().pages)
        pool->release(page), drop(memory::BlockKind::kPage, page.index);
      held.pop_back();
    }
    const auto now = pool->counts();
    REQUIRE(now.states.held + now.pages.held == live.size());
    REQUIRE(now.states.free + now.states.held == 5);
    REQUIRE(now.pages.free + now.pages.held == 9);
  }
}

TEST_CASE("virtual ids say nothing about the physical place", "[memory]") {
  const auto pool = memory::make_split_pool(blocks(8, 32));
  std::vector<memory::Bind> binds;
  REQUIRE(pool->acquire(8, 32, binds));
  int equal = 0;
  for (const auto& bind : binds) equal += bind.id == bind.physical ? 1 : 0;
  CHECK(equal == 0);
}

TEST_CASE("the regions of a split pool lie apart inside the arena", "[memory]") {
  for (const uint64_t arena : {200u, 1000u, 4096u, 100000u, 1234567u}) {
    for (const double share : {0.01, 0.3, 0.5, 0.97}) {
      for (const uint32_t most : {0u, 1u, 7u}) {
        CAPTURE(arena, share, most);
        memory::PoolConfig config{arena, 100, 36, share, most};
        const auto pool = memory::make_split_pool(config);
        const auto states = pool->state_region(), pages = pool->page_region();
        CHECK(states.blocks >= 1);
        CHECK(pages.blocks >= 1);
        if (most != 0) CHECK(states.blocks <= most);
        CHECK(states.offset + states.blocks * states.block_bytes <= pages.offset);
        CHECK(pages.offset + pages.blocks * pages.block_bytes <= arena);
        CHECK(arena - pages.offset - pages.blocks * pages.block_bytes <
              36);  // nothing is left over
        CHECK(states.blocks == pool->counts().states.total);
        CHECK(pages.blocks == pool->counts().pages.total);
      }
    }
  }
}

TEST_CASE("an arena too small for one slot and one page is refused with the numbers", "[memory]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(memory::make_split_pool({100, 100, 36, 0.5, 0}),
                    Contains("100 bytes is too small") && Contains("need 164"));
  CHECK_THROWS_WITH(memory::make_split_pool({1000, 0, 36, 0.5, 0}), Contains("state_bytes 0"));
  CHECK_THROWS_WITH(memory::make_split_pool({1000, 10, 36, 1.5, 0}),
                    Contains("state_share must lie between 0 and 1"));
}
