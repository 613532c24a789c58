#include "memory/hybrid_cache.hpp"

#include <catch2/catch.hpp>

#include "cache_lab.hpp"

using memory::CacheKey;
using memory::KeyElement;
using memory::MissReason;
using memory::SlotRole;
using tests::CacheLab;

namespace {

constexpr uint64_t kState = 640, kPage = 64;  // a state costs ten pages

// Page 4, grid 8.
CacheLab make_lab(uint64_t slots, uint64_t pages, uint32_t cap = 0,
                  const char* policy = "benefit") {
  return CacheLab({4, 8, cap},
                  memory::make_unified_pool({slots * kState + pages * kPage, kState, kPage}),
                  memory::make_eviction_policy(policy, {1.0, 0.0, kState, kPage}));
}

CacheKey prompt(uint32_t length, KeyElement first = 0, uint64_t name_space = 0) {
  CacheKey key{name_space, {}};
  for (uint32_t i = 0; i < length; ++i) key.elements.push_back(first * 1000 + i);
  return key;
}

// Prefills the key, donates at the last grid position before its end, and ends.
void run_once(CacheLab& lab, uint64_t ticket, const CacheKey& key) {
  const auto length = static_cast<uint32_t>(key.elements.size());
  auto run = lab.open(ticket, key, length, 1, length - 1);
  REQUIRE(run);
  lab.restore(*run);
  const uint32_t position = (length - 1) / 8 * 8;
  if (position > run->opened.position) lab.donate(*run, 0, position, false);
  lab.drop(*run);
}

}  // namespace

TEST_CASE("an identical prompt hits up to its last grid position", "[memory]") {
  for (uint32_t length = 1; length <= 40; ++length) {
    CAPTURE(length);
    auto lab = make_lab(8, 100);
    run_once(lab, 1, prompt(length));
    const auto again = lab.open(2, prompt(length), length, 1, length - 1);
    REQUIRE(again);
    CHECK(again->opened.position == (length - 1) / 8 * 8);
    CHECK(again->opened.checkpoint.has_value() == (length > 8));
    CHECK(again->opened.branch == 0);
    lab.check_tree();
  }
}

TEST_CASE("the first branch plants, the second restores without replay", "[memory]") {
  auto lab = make_lab(10, 200);
  run_once(lab, 1, prompt(40));
  CacheKey left = prompt(24), right = prompt(24);
  for (uint32_t i = 0; i < 16; ++i) {
    left.elements.push_back(5000 + i);
    right.elements.push_back(6000 + i);
  }
  auto first = lab.open(2, left, 40, 2, 39);
  REQUIRE(first);
  CHECK(first->opened.position == 0);
  CHECK(first->opened.shared == 24);
  CHECK(first->opened.branch == 24);
  lab.restore(*first);
  CHECK(lab.donate(*first, 0, 24, true));  // planted inside what the tree had
  lab.donate(*first, 0, 32, false);
  lab.drop(*first);
  const auto second = lab.open(3, right, 40, 2, 39);
  REQUIRE(second);
  CHECK(second->opened.position == 24);
  CHECK(second->opened.branch == 0);
  lab.check(*second);
  lab.check_tree();
}

TEST_CASE("a working slot is never donated, and a ghost row touches nothing of the tree",
          "[memory]") {
  auto lab = make_lab(8, 100);
  auto run = lab.open(1, prompt(19), 24, 1, 18);
  REQUIRE(run);
  lab.donate(*run, 0, 16, true);
  // The step after the end: one more KV row, one more token consumed by the state.
  lab.arena.write(run->opened.pages[4], 4711);
  lab.arena.write(run->opened.working, 4712);
  lab.check_tree();
  lab.drop(*run);
  lab.check_tree();
  const auto again = lab.open(2, prompt(19), 24, 0, 18);
  REQUIRE(again);
  CHECK(again->opened.shared == 16);  // the page of the ghost row is not in the tree
  CHECK(again->opened.position == 16);
}

TEST_CASE("an admission takes everything or nothing, but snapshot slots are extras", "[memory]") {
  auto lab = make_lab(2, 10);  // 30 pages' worth
  const auto big = lab.open(1, prompt(8), 60, 0, 7);
  REQUIRE(big);  // 15 pages and a slot
  CHECK(lab.cache.positions_max() == 80);
  CHECK_FALSE(lab.open(2, prompt(8, 1), 24, 0, 7));  // 6 pages and a slot: 16 > 5
  CHECK(lab.cache.owners().pages.held == 15);
  CHECK(lab.cache.owners().states.held == 1);
  CHECK(lab.cache.counters().refused == 1);
  lab.drop(*big);
  const auto small = lab.open(3, prompt(8), 40, 5, 7);
  REQUIRE(small);
  CHECK(small->opened.snapshots.size() == 1);  // of five
  CHECK_FALSE(lab.open(4, prompt(8), 81, 0, 7));
}

TEST_CASE("who could run alone is not refused for what is cached, even for what it would restore",
          "[memory]") {
  auto lab = make_lab(2, 10);  // 30 pages' worth: one state and 20 pages
  run_once(lab, 1, prompt(40));
  const auto full = lab.open(2, prompt(41), lab.cache.positions_max(), 1, 40);
  REQUIRE(full);
  CHECK(full->opened.position == 0);  // its checkpoint had to go
  CHECK(full->opened.shared == 32);   // its KV did not
  CHECK(full->opened.snapshots.empty());
  CHECK(lab.cache.recent().back().reason == MissReason::kNoRoom);
  lab.check(*full);
  lab.drop(*full);
  CHECK(lab.cache.tree().node_count() == 0);  // KV without a state is of no use
}

TEST_CASE("nothing that an admission is about to use is evicted for it", "[memory]") {
  auto lab = make_lab(3, 21);                     // 51 pages' worth
  run_once(lab, 1, prompt(41));                   // 10 pages, one state
  run_once(lab, 2, prompt(41, 1));                // the same: 40 of 51
  auto run = lab.open(3, prompt(60), 80, 0, 59);  // ten pages more and a slot
  REQUIRE(run);
  CHECK(run->opened.position == 40);
  CHECK(run->opened.shared == 40);
  CHECK(lab.cache.tree().cached_slots() == 1);  // the other one went
  lab.check(*run);
  // Before the copy is sent the checkpoint stays, whoever asks.
  CHECK_FALSE(lab.open(4, prompt(8, 2), 8, 0, 7));
  lab.check(*run);
  lab.restore(*run);
  CHECK(lab.open(5, prompt(8, 2), 8, 0, 7));  // now it may go: only its KV is needed
  lab.check(*run);
}

TEST_CASE("two sequences that compute the same prompt end with one copy in the tree", "[memory]") {
  auto lab = make_lab(8, 100);
  auto one = lab.open(1, prompt(33), 36, 1, 32);
  auto two = lab.open(2, prompt(33), 36, 1, 32);
  REQUIRE(one);
  REQUIRE(two);
  lab.donate(*one, 0, 16, true);
  lab.donate(*two, 0, 32, false);  // has its own [0, 16), the tree takes [16, 32)
  CHECK(lab.cache.tree().cached_pages() == 8);
  lab.donate(*one, 0, 32, false);
  CHECK(lab.cache.counters().donated_twice == 1);
  CHECK(lab.cache.owners().pages.held == (4 + 1) + (4 + 1));  // duplicates, and the last pages
  lab.check(*one);
  lab.check(*two);
  lab.drop(*one);
  lab.check(*two);
  lab.drop(*two);
  CHECK(lab.cache.owners().pages.held == 0);
  CHECK(lab.cache.tree().evictable_pages() == 8);
  lab.check_tree();
}

TEST_CASE("a donation is answered with a fresh slot, the same one, or none", "[memory]") {
  auto lab = make_lab(4, 10);
  auto run = lab.open(1, prompt(33), 36, 1, 32);
  REQUIRE(run);
  const auto first = run->opened.snapshots[0];
  const auto fresh = lab.donate(*run, 0, 8, true);
  REQUIRE(fresh);
  CHECK(*fresh != first);
  CHECK(lab.donate(*run, 0, 8, true) == fresh);  // the tree has that checkpoint already
  CHECK_FALSE(lab.donate(*run, 0, 16, false));   // none was asked for
  CHECK(run->opened.snapshots.empty());
  lab.drop(*run);
  auto tight = make_lab(1, 12);  // 22 pages' worth: with nine pages and two states none is left
  auto only = tight.open(1, prompt(8), 8, 1, 7);
  REQUIRE(only);
  CHECK(only->opened.snapshots.size() == 1);
  CHECK_FALSE(tight.donate(*only, 0, 8, true));  // what was just planted does not pay for it
  CHECK(tight.cache.tree().cached_slots() == 1);
}

TEST_CASE("equal tokens under another salt share nothing", "[memory]") {
  auto lab = make_lab(8, 100);
  run_once(lab, 1, prompt(33, 0, 7));
  const auto other = lab.open(2, prompt(33, 0, 8), 33, 0, 32);
  REQUIRE(other);
  CHECK(other->opened.shared == 0);
  CHECK_FALSE(other->opened.checkpoint);
  CHECK(lab.cache.recent().back().reason == MissReason::kCold);
  const auto same = lab.open(3, prompt(33, 0, 7), 33, 0, 32);
  REQUIRE(same);
  CHECK(same->opened.position == 32);
}

TEST_CASE("a poisoned sequence takes back what it planted, unless another one reads it",
          "[memory]") {
  auto lab = make_lab(8, 100);
  run_once(lab, 1, prompt(17));
  auto bad = lab.open(2, prompt(33), 36, 1, 32);
  REQUIRE(bad);
  CHECK(bad->opened.position == 16);
  lab.restore(*bad);
  lab.donate(*bad, 0, 32, false);
  auto reader = lab.open(3, prompt(35), 36, 0, 34);
  REQUIRE(reader);
  CHECK(reader->opened.position == 32);
  lab.drop(*bad, true);
  lab.check(*reader);
  lab.drop(*reader);
  CHECK(lab.cache.tree().cached_slots() == 2);
  auto worse = lab.open(4, prompt(49), 52, 1, 48);
  REQUIRE(worse);
  lab.donate(*worse, 0, 48, false);
  lab.drop(*worse, true);
  CHECK(lab.cache.tree().cached_slots() == 2);
  CHECK(lab.cache.tree().cached_pages() == 8);
  CHECK(lab.cache.counters().evicted_slots[size_t(memory::EvictionReason::kPoisoned)] == 1);
}

TEST_CASE("decode grows, and its tail is found again by the next turn", "[memory]") {
  auto lab = make_lab(8, 100);
  auto run = lab.open(1, prompt(13), 16, 1, 12);
  REQUIRE(run);
  REQUIRE(lab.grow(*run, 3));                                         // [0, 28)
  for (uint32_t i = 13; i < 27; ++i) run->key.elements.push_back(i);  // as prompt(27) goes on
  lab.compute(*run);
  lab.donate(*run, 0, 24, false);
  lab.drop(*run);
  const auto next = lab.open(2, prompt(40), 40, 1, 39);
  REQUIRE(next);
  CHECK(next->opened.position == 24);
  CHECK(next->opened.shared == 24);
  lab.check(*next);
  CHECK_FALSE(lab.grow(*run = *next, 1000));
  CHECK(lab.cache.counters().grow_refused == 1);
}

TEST_CASE("no more is shared than an admission has positions for", "[memory]") {
  auto lab = make_lab(8, 100);
  run_once(lab, 1, prompt(41));
  const auto chunk = lab.open(2, prompt(41), 22, 0, 40);
  REQUIRE(chunk);
  CHECK(chunk->opened.shared == 20);
  CHECK(chunk->opened.pages.size() == 6);
  CHECK(chunk->opened.position == 0);
  CHECK(chunk->opened.branch == 16);
}

TEST_CASE("the cap holds along a path of many turns", "[memory]") {
  auto lab = make_lab(20, 100, 3);
  for (uint32_t turn = 1; turn <= 10; ++turn) run_once(lab, turn, prompt(8 * turn + 1));
  CHECK(lab.cache.tree().cached_slots() == 3);
  CHECK(lab.cache.counters().evicted_slots[size_t(memory::EvictionReason::kPathCap)] == 7);
  const auto next = lab.open(99, prompt(90), 90, 0, 89);
  REQUIRE(next);
  CHECK(next->opened.position == 80);
}

TEST_CASE("long KV makes way for states and states for long KV", "[memory]") {
  for (const char* policy : {"benefit", "lru"}) {
    CAPTURE(policy);
    auto lab = make_lab(4, 60, 0, policy);  // ten states, or a hundred pages
    for (uint64_t i = 1; i <= 5; ++i) run_once(lab, i, prompt(161, i));
    std::vector<CacheLab::Running> runs;
    for (uint64_t i = 0; i < 9; ++i) {
      auto run = lab.open(100 + i, prompt(4, 50 + i), 4, 0, 3);
      REQUIRE(run);
      runs.push_back(*run);
    }
    CHECK(lab.cache.owners().states.held == 9);
    for (const auto& run : runs) lab.drop(run);
    const auto wide = lab.open(200, prompt(300, 99), 360, 0, 299);
    REQUIRE(wide);
    lab.check_tree();
  }
}

TEST_CASE("a drop of an unknown ticket is nothing, and a drop gives everything back", "[memory]") {
  auto lab = make_lab(8, 100);
  CHECK(lab.send(memory::Drop{{5}, 5, true}).answers.empty());
  auto run = lab.open(1, prompt(33), 50, 3, 32);
  REQUIRE(run);
  lab.drop(*run);
  lab.drop(*run);
  CHECK(lab.cache.owners().states.held == 0);
  CHECK(lab.cache.owners().pages.held == 0);
  CHECK(lab.cache.tree().node_count() == 0);
}

TEST_CASE("the cache explains its hits and its slots", "[memory]") {
  auto lab = make_lab(8, 100);
  run_once(lab, 1, prompt(41));
  CHECK(lab.cache.recent().back().reason == MissReason::kCold);
  CacheKey fork = prompt(24);
  fork.elements.resize(40, 7777);
  auto run = lab.open(2, fork, 40, 1, 39);
  REQUIRE(run);
  const auto& record = lab.cache.recent().back();
  CHECK(record.reason == MissReason::kNoCheckpoint);
  CHECK(record.kv == 24);
  CHECK(record.branch == 24);
  const auto limited = lab.open(3, prompt(41), 41, 0, 12);
  REQUIRE(limited);
  CHECK(lab.cache.recent().back().reason == MissReason::kRestoreLimit);
  CHECK(lab.cache.recent().back().deepest == 40);
  const auto hit = lab.open(4, prompt(41), 41, 0, 40);
  REQUIRE(hit);
  CHECK(lab.cache.recent().back().reason == MissReason::kNone);
  const auto counters = lab.cache.counters();
  CHECK(counters.opened == 4);
  CHECK(counters.restored == 1);
  CHECK(counters.key_positions == 41 + 40 + 41 + 41);
  CHECK(counters.kv_positions == 24 + 40 + 40);
  CHECK(counters.state_positions == 40);
  const auto slots = lab.cache.slots();
  CHECK(slots.size() == 1 + 2 + 1 + 1);
  size_t checkpoints = 0;
  for (const auto& slot : slots) checkpoints += slot.role == SlotRole::kCheckpoint ? 1 : 0;
  CHECK(checkpoints == 1);
  const auto owners = lab.cache.owners();
  CHECK(owners.states.cached == 1);
  CHECK(owners.states.held == 4);
  CHECK(owners.pages.cached == 10);
}
