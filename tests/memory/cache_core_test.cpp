#include "memory/cache_core.hpp"

#include <catch2/catch.hpp>
#include <random>

namespace {

memory::CacheCore make_core(uint32_t slots, uint32_t pages) {
  memory::PoolConfig config;
  config.state_bytes = config.page_bytes = 64;
  config.arena_bytes = 64 * (uint64_t{slots} + pages);
  config.state_share = 0.999;
  config.max_slots = slots;
  return memory::CacheCore(memory::make_split_pool(config));
}

}  // namespace

TEST_CASE("a reserve takes slots and pages together or nothing", "[memory]") {
  auto core = make_core(2, 4);
  const auto first = core.handle(memory::Reserve{{1}, 1, 3, 9});
  const auto& grant = std::get<memory::Grant>(first);
  CHECK(grant.sequence == memory::SequenceId{1});
  CHECK(grant.ticket == 9);
  CHECK(grant.slots.size() == 1);
  CHECK(grant.pages.size() == 3);
  CHECK(grant.binds.size() == 4);
  const auto second =
      core.handle(memory::Reserve{{2}, 1, 2, 10});  // a slot is free, two pages are not
  REQUIRE(std::holds_alternative<memory::Refusal>(second));
  CHECK(std::get<memory::Refusal>(second).ticket == 10);
  CHECK(core.counts().states.free == 1);
  CHECK(core.counts().pages.free == 1);
  CHECK(core.owner_count() == 1);
  core.check();
}

TEST_CASE("a second reserve adds to what the sequence holds, and one release gives all back",
          "[memory]") {
  auto core = make_core(2, 4);
  core.handle(memory::Reserve{{1}, 1, 1, 1});
  const auto more = core.handle(memory::Reserve{{1}, 0, 2, 2});
  CHECK(std::get<memory::Grant>(more).pages.size() == 2);  // only the new ones
  CHECK(std::get<memory::Grant>(more).binds.size() == 2);
  CHECK(core.counts().pages.held == 3);
  core.handle(memory::Release{{1}});
  CHECK(core.counts().pages.free == 4);
  CHECK(core.counts().states.free == 2);
  CHECK(core.owner_count() == 0);
  core.handle(memory::Release{{1}});  // unknown by now
  core.handle(memory::Release{{42}});
  core.check();
}

TEST_CASE("the cache core never loses a block and never gives one twice, for any history",
          "[memory][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  auto core = make_core(4, 12);
  for (int step = 0; step < 400; ++step) {
    const memory::SequenceId id{rng() % 6};
    if (rng() % 3 != 0) {
      const auto before = core.counts();
      const auto slots = static_cast<uint32_t>(rng() % 2), pages = static_cast<uint32_t>(rng() % 4);
      const auto answer = core.handle(memory::Reserve{id, slots, pages, uint64_t(step)});
      const bool fits = slots <= before.states.free && pages <= before.pages.free;
      REQUIRE(std::holds_alternative<memory::Grant>(answer) == fits);
    } else {
      core.handle(memory::Release{id});
    }
    core.check();
  }
  for (uint64_t id = 0; id < 6; ++id) core.handle(memory::Release{{id}});
  REQUIRE(core.owner_count() == 0);
  REQUIRE(core.counts().states.free == 4);
  REQUIRE(core.counts().pages.free == 12);
}
