// Host memory on its own: what is kept of a prefix is kept from its beginning on.
#include "memory/host_store.hpp"

#include <catch2/catch.hpp>
#include <random>

using memory::BlockKind;
using memory::HostBlock;
using memory::HostStore;
using memory::PrefixPoint;

namespace {

constexpr uint64_t kState = 30, kPage = 10;

// The page at depth `depth` (1 is the first) of family `family`; all share the first two.
PrefixPoint page_point(uint64_t family, uint32_t depth) {
  PrefixPoint at;
  at.name_space = 7;
  at.prefix = memory::root_prefix(7);
  for (uint64_t i = 1; i <= depth; ++i) {
    at.needs = at.prefix;
    const uint64_t element = i <= 2 ? i : family * 100 + i;
    at.prefix = memory::next_prefix(at.prefix, std::span(&element, 1));
  }
  at.position = depth;
  return at;
}

PrefixPoint state_point(uint64_t family, uint32_t depth) {
  PrefixPoint at = page_point(family, depth);
  at.needs = at.prefix;
  return at;
}

struct Bench {
  explicit Bench(uint64_t bytes) : store({bytes, kState, kPage}) {}
  std::optional<HostBlock> page(uint64_t family, uint32_t depth) {
    return store.insert(BlockKind::kPage, page_point(family, depth), commands);
  }
  std::optional<HostBlock> state(uint64_t family, uint32_t depth) {
    return store.insert(BlockKind::kState, state_point(family, depth), commands);
  }
  bool has_page(uint64_t family, uint32_t depth) const {
    return store.find(BlockKind::kPage, page_point(family, depth).prefix).has_value();
  }
  HostStore store;
  std::vector<memory::MemoryCommand> commands;
};

}  // namespace

TEST_CASE("A copy that is there is not made twice, and counts as used", "[memory]") {
  Bench bench(3 * kPage);
  REQUIRE(bench.page(1, 3));
  REQUIRE(bench.page(2, 3));
  CHECK_FALSE(bench.page(1, 3));
  REQUIRE(bench.page(3, 3));
  CHECK(bench.commands.empty());
  REQUIRE(bench.page(4, 3));  // 2 was used least recently
  CHECK(bench.commands.size() == 1);
  CHECK(bench.has_page(1, 3));
  CHECK_FALSE(bench.has_page(2, 3));
}

TEST_CASE("A page outlives what needs it, however long ago it was used", "[memory]") {
  Bench bench(5 * kPage);
  REQUIRE(bench.page(1, 1));
  REQUIRE(bench.page(1, 2));
  REQUIRE(bench.state(1, 2));
  REQUIRE(bench.page(9, 5));  // the state is the oldest of what nobody needs
  CHECK_FALSE(bench.store.find(BlockKind::kState, state_point(1, 2).prefix));
  CHECK(bench.has_page(1, 1));
  REQUIRE(bench.state(1, 2));  // for which the page of 9 makes room, not the page that it needs
  CHECK(bench.has_page(1, 2));
  CHECK_FALSE(bench.has_page(9, 5));
}

TEST_CASE("What is pinned stays, and what is larger than all of it never comes", "[memory]") {
  Bench bench(3 * kPage);
  const auto pinned = bench.page(1, 3);
  bench.store.use_and_pin(*pinned);
  CHECK_FALSE(Bench(kState - 1).state(1, 1));
  REQUIRE(bench.page(2, 3));
  CHECK_FALSE(bench.state(3, 3));  // 2 went in vain
  CHECK(bench.has_page(1, 3));
  bench.store.unpin(*pinned);
  REQUIRE(bench.state(3, 3));
  CHECK_FALSE(bench.has_page(1, 3));
  bench.store.check();
}

TEST_CASE("Adopted copies fill what is free, and are the first to go, the last adopted first",
          "[memory]") {
  Bench bench(3 * kPage);
  REQUIRE(bench.page(1, 3));
  REQUIRE(bench.store.adopt(BlockKind::kPage, page_point(2, 3)));
  REQUIRE(bench.store.adopt(BlockKind::kPage, page_point(3, 3)));
  CHECK_FALSE(bench.store.adopt(BlockKind::kPage, page_point(4, 3)));
  CHECK_FALSE(bench.store.adopt(BlockKind::kPage, page_point(1, 3)));
  REQUIRE(bench.page(5, 3));
  CHECK_FALSE(bench.has_page(3, 3));
  REQUIRE(bench.page(6, 3));
  CHECK_FALSE(bench.has_page(2, 3));
  CHECK(bench.has_page(1, 3));
}

TEST_CASE("Host memory keeps its invariant over random histories", "[memory][property]") {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    Bench bench(kPage * (rng() % 40));
    std::set<HostBlock> live;  // what a worker would hold
    for (int step = 0; step < 2000; ++step) {
      const uint64_t family = rng() % 4;
      const auto depth = static_cast<uint32_t>(1 + rng() % 8);
      const auto before = bench.store.copies();
      bench.commands.clear();
      std::optional<HostBlock> made;
      const auto choice = rng() % 8;
      if (choice == 0) {
        if (!live.empty()) bench.store.forget(*live.begin(), bench.commands);
      } else if (choice == 1) {
        if (!live.empty()) bench.store.use(*std::prev(live.end()));
      } else if (choice == 2) {
        made = bench.store.adopt(BlockKind::kPage, page_point(family, depth));
      } else if (choice < 5) {
        made = bench.state(family, depth);
      } else {
        made = bench.page(family, depth);
      }
      for (const auto& command : bench.commands) {
        const HostBlock gone = std::get<memory::Discard>(command).host;
        REQUIRE(live.erase(gone) == 1);
        if (choice == 0 || before.at(gone).kind == BlockKind::kState) continue;
        // Nothing needs a page that was evicted: it would have gone first.
        for (const auto& [block, copy] : bench.store.copies())
          REQUIRE(copy.at.needs != before.at(gone).at.prefix);
      }
      if (made) REQUIRE(live.insert(*made).second);
      bench.store.check();
      REQUIRE(live.size() == bench.store.copies().size());
      for (const auto& [block, copy] : bench.store.copies()) REQUIRE(live.count(block) == 1);
    }
  }
}
