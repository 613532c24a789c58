// Pins: eviction goes around them, whatever the shortage, and they cannot take the whole memory.
#include <catch2/catch.hpp>

#include "cache_lab.hpp"

using namespace memory;
using tests::CacheLab;

namespace {

constexpr uint64_t kState = 640, kPage = 64;

CacheKey prompt(uint32_t length, KeyElement first) {
  CacheKey key{0, {}};
  for (uint32_t i = 0; i < length; ++i) key.elements.push_back(first * 1000 + i);
  return key;
}

void run_once(CacheLab& lab, uint64_t ticket, const CacheKey& key) {
  auto run = lab.open(ticket, key, 24, 1, 23);
  REQUIRE(run);
  lab.restore(*run);
  if (run->opened.position < 16) lab.donate(*run, 0, 16, false);
  lab.drop(*run);
}

NodeId node_at(const CacheLab& lab, const CacheKey& key) {
  const Match match = lab.cache.tree().match(key, 24, 23);
  REQUIRE(match.checkpoint);
  return *match.checkpoint;
}

kernels::Result<NodeOutcome> change(CacheLab& lab, NodeAction action, NodeId node) {
  CacheReply reply;
  auto outcome = lab.cache.change({action, node}, reply);
  lab.arena.run(reply.commands);
  lab.cache.check();
  return outcome;
}

}  // namespace

TEST_CASE("what is pinned stays under any pressure", "[memory][pins]") {
  for (const char* policy : {"benefit", "lru"}) {
    CAPTURE(policy);
    CacheLab lab({4, 8, 0}, make_unified_pool({6 * kState + 40 * kPage, kState, kPage}),
                 make_eviction_policy(policy, {1.0, 0.0, kState, kPage}));
    run_once(lab, 1, prompt(24, 1));
    REQUIRE(change(lab, NodeAction::kPin, node_at(lab, prompt(24, 1)))->pins == 1);
    REQUIRE(change(lab, NodeAction::kPin, node_at(lab, prompt(24, 1)))->pins == 2);
    for (uint64_t i = 2; i < 40; ++i) run_once(lab, i, prompt(24, i));
    CHECK(lab.cache.counters().evicted_slots[0] > 20);
    lab.check_tree();
    const NodeId node = node_at(lab, prompt(24, 1));
    CHECK(lab.cache.tree().node(node).end == 16);
    REQUIRE(change(lab, NodeAction::kUnpin, node)->pins == 1);
    CacheReply reply;
    lab.cache.flush(reply);
    lab.arena.run(reply.commands);
    CHECK(lab.cache.owners().states.cached == 1);
    REQUIRE(change(lab, NodeAction::kUnpin, node)->pins == 0);
    lab.cache.flush(reply);
    CHECK(lab.cache.owners().states.cached == 0);
  }
}

TEST_CASE("pins hold at most half of the memory", "[memory][pins]") {
  CacheLab lab({4, 8, 0}, make_unified_pool({8 * kState, kState, kPage}),
               make_eviction_policy("lru", {1.0, 0.0, kState, kPage}));
  run_once(lab, 1, prompt(24, 1));  // 16 positions: 4 pages and a state, 896 bytes
  run_once(lab, 2, prompt(24, 2));
  run_once(lab, 3, prompt(24, 3));
  REQUIRE(change(lab, NodeAction::kPin, node_at(lab, prompt(24, 1))).has_value());
  REQUIRE(change(lab, NodeAction::kPin, node_at(lab, prompt(24, 2))).has_value());
  const NodeId third = node_at(lab, prompt(24, 3));
  const auto refused = change(lab, NodeAction::kPin, third);
  CHECK(refused.error().message == "node " + std::to_string(third.index) +
                                       " cannot be pinned: pins would hold 2688 bytes, and may "
                                       "hold 2560, half of the memory");
  REQUIRE(change(lab, NodeAction::kEvict, third).has_value());
}

TEST_CASE("no pin keeps what is not finite", "[memory][pins]") {
  CacheLab lab({4, 8, 0}, make_unified_pool({20 * kState, kState, kPage}),
               make_eviction_policy("lru", {1.0, 0.0, kState, kPage}));
  auto run = lab.open(1, prompt(24, 1), 24, 1, 23);
  REQUIRE(run);
  lab.donate(*run, 0, 16, false);
  REQUIRE(change(lab, NodeAction::kPin, node_at(lab, prompt(24, 1))).has_value());
  lab.drop(*run, true);
  CHECK(lab.cache.owners().states.cached == 0);
  CHECK(lab.cache.owners().pages.cached == 0);
}

TEST_CASE("a node that splits keeps its pins", "[memory][pins]") {
  CacheLab lab({4, 8, 0}, make_unified_pool({20 * kState, kState, kPage}),
               make_eviction_policy("lru", {1.0, 0.0, kState, kPage}));
  run_once(lab, 1, prompt(24, 1));
  const NodeId node = node_at(lab, prompt(24, 1));
  REQUIRE(change(lab, NodeAction::kPin, node).has_value());
  CacheKey fork = prompt(8, 1);
  for (KeyElement i = 0; i < 16; ++i) fork.elements.push_back(9000 + i);
  run_once(lab, 2, fork);
  CHECK(lab.cache.tree().node(node).begin == 8);
  REQUIRE(change(lab, NodeAction::kUnpin, node)->pins == 0);
  CHECK(change(lab, NodeAction::kEvict, lab.cache.tree().node(node).parent).error().message.find(
            "is a tombstone") != std::string::npos);
}
