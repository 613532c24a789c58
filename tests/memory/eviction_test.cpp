#include "memory/eviction.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <random>
#include <set>

using memory::Freed;
using memory::NodeId;
using memory::PageId;
using memory::SlotId;

namespace {

constexpr memory::Shortage kAny{true, true, true}, kSlots{true, false, false},
    kPages{false, true, false};

struct Cache {
  explicit Cache(std::unique_ptr<memory::EvictionPolicy> made)
      : tree({1, 1, 0}), policy(std::move(made)) {}
  NodeId plant(const std::vector<uint64_t>& key, uint64_t ticket) {
    std::vector<PageId> pages;
    for (size_t i = 0; i < key.size(); ++i) pages.push_back({next_page++, 1});
    const auto inserted = tree.insert(
        {0, key, static_cast<uint32_t>(key.size()), pages, SlotId{next_slot++, 1}, ticket});
    tree.supersede(inserted.node, ticket);
    return inserted.node;
  }
  NodeId plant(uint64_t first, size_t length, uint64_t ticket) {
    std::vector<uint64_t> key;
    for (size_t i = 0; i < length; ++i) key.push_back(first * 1000 + i);
    return plant(key, ticket);
  }
  memory::Receipt use(uint64_t first, size_t length) {
    memory::CacheKey key;
    for (size_t i = 0; i < length; ++i) key.elements.push_back(first * 1000 + i);
    const auto size = static_cast<uint32_t>(length);
    return tree.acquire(0, tree.match(key, size, size));
  }
  void touch(uint64_t first, size_t length) { tree.release(use(first, length), freed); }
  std::optional<NodeId> pick(memory::Shortage shortage) {
    policy->refresh(tree, tree.take_changed());
    return policy->pick(tree, shortage);
  }
  memory::RadixTree tree;
  std::unique_ptr<memory::EvictionPolicy> policy;
  Freed freed;
  uint32_t next_page = 0, next_slot = 0;
};

memory::CacheCosts costs() { return {1.0, 0.0, 20, 1}; }  // a state is worth 20 pages

}  // namespace

TEST_CASE("LRU takes slots by the last restore and pages by the last walk", "[memory]") {
  Cache cache(memory::make_lru_policy());
  const NodeId a = cache.plant(1, 10, 1), b = cache.plant(2, 10, 2);
  const NodeId aa = cache.plant(1, 20, 3);
  CHECK(cache.pick(kSlots) == a);  // coldest state, though its path was just walked
  CHECK(cache.pick(kPages) == b);  // a is no leaf
  cache.touch(1, 10);              // restores a; the leaf below it is not walked
  cache.touch(2, 10);
  CHECK(cache.pick(kSlots) == aa);
  CHECK(cache.pick(kPages) == aa);
  const auto lock = cache.use(1, 20);
  CHECK(cache.pick(kPages) == b);
  CHECK(cache.pick(kSlots) == a);
  cache.tree.release(lock, cache.freed);
  CHECK(cache.pick(kPages) == b);
}

TEST_CASE("benefit keeps a long replay before a short one of the same age and size", "[memory]") {
  Cache cache(memory::make_benefit_policy({1.0, 0.0, 1000, 1}));
  const NodeId lengthy = cache.plant(1, 200, 1), brief = cache.plant(2, 20, 2);
  CHECK(cache.pick(kAny) == brief);
  cache.tree.evict(brief, cache.freed);
  CHECK(cache.pick(kAny) == lengthy);
}

TEST_CASE("benefit counts only the replay from the nearest checkpoint above", "[memory]") {
  Cache cache(memory::make_benefit_policy({1.0, 0.0, 1000, 1}));
  cache.plant(1, 200, 1);
  cache.touch(1, 200);
  cache.touch(1, 200);  // a fork: not superseded
  const NodeId next = cache.plant(1, 210, 2);
  const NodeId other = cache.plant(2, 100, 3);
  CHECK(cache.pick(kAny) == next);  // saves 10 positions, the other one 100
  CHECK(cache.pick(kPages) == next);
  CHECK(next != other);
}

TEST_CASE("benefit gives up a superseded tip before anything else", "[memory]") {
  Cache cache(memory::make_benefit_policy(costs()));
  const NodeId old = cache.plant(1, 100, 1);
  cache.touch(1, 100);
  cache.plant(1, 110, 2);  // the session's next turn
  cache.plant(2, 100, 3);
  CHECK(cache.pick(kAny) == old);
  CHECK(cache.pick(kSlots) == old);
  CHECK(cache.pick(kPages) != old);  // it would free none
}

TEST_CASE("benefit lets age decide between equals", "[memory]") {
  Cache cache(memory::make_benefit_policy(costs()));
  const NodeId a = cache.plant(1, 50, 1), b = cache.plant(2, 50, 2);
  CHECK(cache.pick(kAny) == a);
  cache.touch(1, 50);
  CHECK(cache.pick(kAny) == b);
}

TEST_CASE("benefit notices what an eviction does to the nodes around it", "[memory]") {
  Cache cache(memory::make_benefit_policy({1.0, 0.0, 1000, 1}));
  const NodeId a = cache.plant(1, 100, 1);
  const NodeId tail = cache.plant(1, 104, 2);
  const NodeId other = cache.plant(2, 50, 3);
  CHECK(cache.pick(kPages) == tail);  // four positions from a
  cache.tree.evict(a, cache.freed);
  CHECK(cache.pick(kPages) == other);  // now the tail saves 104
}

TEST_CASE("a policy empties any tree, and never names what is locked", "[memory][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  for (const char* name : {"benefit", "lru"}) {
    CAPTURE(name);
    std::mt19937 rng(seed);
    Cache cache(memory::make_eviction_policy(name, costs()));
    std::vector<memory::Receipt> receipts;
    for (uint64_t ticket = 1; ticket < 200; ++ticket) {
      const uint64_t first = rng() % 5;
      switch (rng() % 4) {
        case 0:
          receipts.push_back(cache.use(first, 1 + rng() % 30));
          break;
        case 1:
          if (receipts.empty()) break;
          std::swap(receipts[rng() % receipts.size()], receipts.back());
          cache.tree.release(receipts.back(), cache.freed);
          receipts.pop_back();
          break;
        case 2:
          cache.plant(first, 1 + rng() % 30, ticket);
          break;
        default:
          const auto shortage = rng() % 2 == 0 ? kPages : kSlots;
          const auto victim = cache.pick(shortage);
          if (!victim) break;
          REQUIRE(cache.tree.evictable(*victim));
          if (shortage.pages) REQUIRE(cache.tree.bundle(*victim).pages > 0);
          cache.tree.evict(*victim, cache.freed);
      }
      cache.tree.check(receipts);
    }
    for (const auto& receipt : receipts) cache.tree.release(receipt, cache.freed);
    while (const auto victim = cache.pick(kPages)) cache.tree.evict(*victim, cache.freed);
    REQUIRE(cache.tree.node_count() == 0);
    REQUIRE_FALSE(cache.pick(kSlots));
  }
}

TEST_CASE("a hundred thousand nodes are evicted without a scan each", "[memory]") {
  for (const char* name : {"benefit", "lru"}) {
    CAPTURE(name);
    Cache cache(memory::make_eviction_policy(name, costs()));
    for (uint64_t i = 0; i < 100000; ++i) cache.plant({i % 100, i / 100, i, i + 1}, i + 1);
    const auto start = std::chrono::steady_clock::now();
    uint32_t count = 0;
    while (const auto victim = cache.pick(kAny)) {
      cache.tree.evict(*victim, cache.freed);
      ++count;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    CHECK(count == 100000);
    CHECK(took.count() < 10);  // a scan each would be 5e9 steps
  }
}

TEST_CASE("an unknown policy has no name", "[memory]") {
  CHECK(memory::make_eviction_policy("fifo", costs()) == nullptr);
}
