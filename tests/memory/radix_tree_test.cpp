#include "memory/radix_tree.hpp"

#include <catch2/catch.hpp>
#include <string_view>

using memory::CacheKey;
using memory::Freed;
using memory::KeyElement;
using memory::Match;
using memory::NodeId;
using memory::PageId;
using memory::Receipt;
using memory::SlotId;

namespace {

// One letter is one page of four equal elements, or of what the digit behind it changes.
CacheKey key_of(std::string_view letters, uint64_t name_space = 0) {
  CacheKey key{name_space, {}};
  for (const char letter : letters) {
    for (int i = 0; i < 4; ++i) key.elements.push_back(static_cast<KeyElement>(letter));
  }
  return key;
}

// Page 4, grid 8: two letters are a grid step.
struct Tree {
  explicit Tree(uint32_t cap = 0) : tree({4, 8, cap}) {}
  memory::Inserted plant(std::string_view letters, uint64_t ticket = 1, uint64_t name_space = 0) {
    const CacheKey key = key_of(letters, name_space);
    std::vector<PageId> pages;
    for (size_t i = 0; i < letters.size(); ++i) pages.push_back({next_page++, 1});
    return tree.insert({name_space, key.elements, static_cast<uint32_t>(key.elements.size()), pages,
                        SlotId{next_slot++, 1}, ticket});
  }
  Match match(std::string_view letters, uint64_t name_space = 0) const {
    const CacheKey key = key_of(letters, name_space);
    const auto size = static_cast<uint32_t>(key.elements.size());
    return tree.match(key, size, size);
  }
  Receipt acquire(std::string_view letters) {
    receipts.push_back(tree.acquire(0, match(letters)));
    return receipts.back();
  }
  void release_all() {
    for (const Receipt& receipt : receipts) tree.release(receipt, freed);
    receipts.clear();
  }
  void check() const { tree.check(receipts); }
  memory::RadixTree tree;
  std::vector<Receipt> receipts;
  Freed freed;
  uint32_t next_page = 0, next_slot = 0;
};

}  // namespace

TEST_CASE("a match stops at the deepest checkpoint and tells what KV lies beyond", "[memory]") {
  Tree t;
  t.plant("abcdef");
  t.check();
  const Match full = t.match("abcdefgh");
  CHECK(full.kv == 24);
  CHECK(full.position == 24);
  CHECK(full.branch == 0);
  const Match part = t.match("abcdxy");  // KV up to d, but the only state is at f
  CHECK(part.kv == 16);
  CHECK(part.position == 0);
  CHECK_FALSE(part.checkpoint);
  CHECK(part.branch == 16);
  const Match odd = t.match("abcx");
  CHECK(odd.kv == 12);
  CHECK(odd.branch == 8);  // down to the grid
  CHECK(t.match("x").kv == 0);
  CHECK(t.match("").kv == 0);
}

TEST_CASE("a trailing part of a page never matches", "[memory]") {
  Tree t;
  t.plant("ab");
  for (uint32_t length = 0; length <= 8; ++length) {
    CacheKey key = key_of("ab");
    key.elements.resize(length);
    const Match match = t.tree.match(key, length, length);
    CHECK(match.kv == length / 4 * 4);
    CHECK(match.position == (length == 8 ? 8 : 0));
  }
  CacheKey key = key_of("ab");
  key.elements[2] = 'x';  // differs inside the first page
  CHECK(t.tree.match(key, 8, 8).kv == 0);
}

TEST_CASE("no checkpoint beyond the restore limit is used, nor planted a second time", "[memory]") {
  Tree t;
  t.plant("ab");
  t.plant("abcd");
  const CacheKey key = key_of("abcd");
  const Match match = t.tree.match(key, 16, 15);  // the identical prompt: one row must be computed
  CHECK(match.kv == 16);
  CHECK(match.position == 8);
  CHECK(match.deepest == 16);
  CHECK(match.branch == 0);
  CHECK(t.tree.match(key, 11, 15).kv == 8);  // the KV limit counts whole pages
}

TEST_CASE("a split leaves the state on the lower half and copies the locks", "[memory]") {
  Tree t;
  const auto planted = t.plant("abcdef");
  t.acquire("abcdef");
  t.acquire("abcdxx");  // splits at d
  t.check();
  const auto& lower = t.tree.node(planted.node);
  CHECK(lower.begin == 16);
  CHECK(lower.checkpoint);
  CHECK(lower.kv_locks == 1);
  CHECK(lower.state_locks == 1);
  const auto& upper = t.tree.node(lower.parent);
  CHECK(upper.end == 16);
  CHECK_FALSE(upper.checkpoint);
  CHECK(upper.kv_locks == 2);
  CHECK(upper.state_locks == 0);
  t.release_all();
  t.check();
  CHECK(t.freed.pages.empty());
  CHECK(t.match("abcdef").position == 24);  // the stateless upper half blocks nothing
}

TEST_CASE("a branch is planted once and restored by the next sibling", "[memory]") {
  Tree t;
  t.plant("abcdef", 1);
  const Match first = t.match("abcdxy");
  REQUIRE(first.branch == 16);
  t.acquire("abcdxy");
  const auto branch = t.plant("abcd", 2);
  CHECK(branch.attached);
  CHECK(branch.first_new == 16);  // the tree takes no page
  t.check();
  const Match second = t.match("abcdpq");
  CHECK(second.position == 16);
  CHECK(second.branch == 0);
  t.release_all();
  t.check();
}

TEST_CASE("an insert takes only the pages that the tree lacks", "[memory]") {
  Tree t;
  t.plant("abcd");
  const auto more = t.plant("abcdef");
  CHECK(more.first_new == 16);
  CHECK(t.tree.cached_pages() == 6);
  const auto fork = t.plant("abxy");
  CHECK(fork.first_new == 8);
  CHECK(t.tree.cached_pages() == 8);
  const auto again = t.plant("abcd");
  CHECK_FALSE(again.attached);
  CHECK(again.first_new == 16);
  t.check();
  std::vector<PageId> pages;
  t.tree.collect_pages(more.node, pages);
  CHECK(pages == std::vector<PageId>{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {8, 1}, {9, 1}});
}

TEST_CASE("namespaces share nothing, and an empty one leaves nothing behind", "[memory]") {
  Tree t;
  t.plant("abcd", 1, 7);
  CHECK(t.match("abcd", 7).position == 16);
  CHECK(t.match("abcd", 8).kv == 0);
  CHECK(t.tree.root(7));
  CHECK_FALSE(t.tree.root(8));
  const Receipt cold = t.tree.acquire(8, t.match("abcd", 8));
  CHECK(t.tree.root(8));
  t.tree.release(cold, t.freed);
  CHECK_FALSE(t.tree.root(8));
  t.tree.evict(*t.match("abcd", 7).checkpoint, t.freed);
  CHECK(t.tree.node_count() == 0);
  CHECK(t.freed.pages.size() == 4);
  t.check();
}

TEST_CASE("evicting an inner checkpoint leaves a tombstone, a leaf's takes what only it needed",
          "[memory]") {
  Tree t;
  const auto ab = t.plant("ab");
  const auto abcd = t.plant("abcd");
  const auto abcdef = t.plant("abcdef");
  const auto abxy = t.plant("abxy");
  t.tree.evict(abcd.node, t.freed);
  CHECK(t.freed.slots.size() == 1);
  CHECK(t.freed.pages.empty());
  t.check();
  CHECK(t.match("abcdzz").kv == 16);  // the KV is still there: a branch target
  CHECK(t.match("abcdzz").branch == 16);
  CHECK(t.tree.bundle(abcdef.node).pages == 4);  // c, d, e, f: up to the checkpoint at b
  t.tree.evict(abcdef.node, t.freed);
  CHECK(t.freed.pages.size() == 4);
  CHECK(t.tree.bundle(abxy.node).pages == 2);
  t.tree.evict(ab.node, t.freed);
  CHECK(t.tree.bundle(abxy.node).pages == 4);
  t.tree.evict(abxy.node, t.freed);
  CHECK(t.tree.node_count() == 0);
  CHECK(t.freed.slots.size() == 4);
  CHECK(t.freed.pages.size() == 8);
  t.check();
}

TEST_CASE("a leaf's bundle stops at a fork and at a lock", "[memory]") {
  Tree t;
  const auto abcd = t.plant("abcd");
  const auto abxy = t.plant("abxy");
  CHECK(t.tree.bundle(abcd.node).pages == 2);  // a, b are the sibling's too
  t.acquire("abxyzz");
  CHECK_FALSE(t.tree.evictable(abxy.node));
  t.tree.evict(abcd.node, t.freed);
  CHECK(t.freed.pages.size() == 2);
  t.check();
  Receipt& receipt = t.receipts.back();
  t.tree.release_state(receipt);
  CHECK(t.tree.evictable(abxy.node));
  CHECK(t.tree.bundle(abxy.node).pages == 0);  // the reader still needs its KV
  t.tree.evict(abxy.node, t.freed);
  CHECK(t.freed.pages.size() == 2);
  t.check();
  t.release_all();  // the last lock falls: a leaf without checkpoint goes
  CHECK(t.freed.pages.size() == 6);
  CHECK(t.tree.node_count() == 0);
  t.check();
}

TEST_CASE("a lock moves down with what its owner plants", "[memory]") {
  Tree t;
  t.plant("ab");
  t.acquire("abcd");
  const auto planted = t.plant("abcd", 5);
  t.tree.lower(t.receipts.back(), planted.node);
  t.check();
  CHECK(t.tree.node(planted.node).kv_locks == 1);
  CHECK(t.tree.evictable_pages() == 0);
  t.release_all();
  CHECK(t.tree.evictable_pages() == 4);
  t.check();
}

TEST_CASE("the cap drops the shallowest checkpoints but spares tail, forks, leaves and locked ones",
          "[memory]") {
  Tree t(2);
  const auto ab = t.plant("ab");
  const auto abcd = t.plant("abcd");
  const auto abcdef = t.plant("abcdef");
  CHECK(t.tree.enforce_cap(abcdef.node, t.freed) == 1);
  CHECK_FALSE(t.tree.node(ab.node).checkpoint);
  CHECK(t.tree.node(abcd.node).checkpoint);
  t.plant("abcdxy");  // now abcd is a fork
  const auto tail = t.plant("abcdefgh");
  t.acquire("abcdef");                                 // and abcdef is locked
  CHECK(t.tree.enforce_cap(tail.node, t.freed) == 0);  // soft: three remain
  t.release_all();
  CHECK(t.tree.enforce_cap(tail.node, t.freed) == 1);
  CHECK_FALSE(t.tree.node(abcdef.node).checkpoint);
  CHECK(t.tree.node(abcd.node).checkpoint);
  t.check();
}

TEST_CASE("a newer turn supersedes the tip it came from, but no fork", "[memory]") {
  Tree t;
  const auto turn1 = t.plant("abcd", 1);
  t.acquire("abcdef");
  const auto turn2 = t.plant("abcdef", 2);
  t.tree.supersede(turn2.node, 2);
  CHECK(t.tree.node(turn1.node).superseded);
  const auto later = t.plant("abcdefgh", 2);  // its own earlier one is not an older tip
  t.tree.supersede(later.node, 2);
  CHECK_FALSE(t.tree.node(turn2.node).superseded);
  t.release_all();
  t.acquire("abcdxy");  // somebody comes back: a fork
  CHECK_FALSE(t.tree.node(turn1.node).superseded);
  const auto fork = t.plant("abcdxy", 3);
  t.tree.supersede(fork.node, 3);
  CHECK_FALSE(t.tree.node(turn1.node).superseded);
  t.release_all();
  t.check();
}

TEST_CASE("with a superseded tip goes what its turn planted on the way to it", "[memory]") {
  Tree t;
  const auto prompt = t.plant("ab", 1);
  const auto answer = t.plant("abcd", 1);
  t.acquire("abcdef");
  const auto next = t.plant("abcdef", 2);
  t.tree.supersede(next.node, 2);
  CHECK(t.tree.node(answer.node).superseded);
  CHECK(t.tree.node(prompt.node).superseded);
  CHECK_FALSE(t.tree.node(next.node).superseded);
  t.release_all();
}

TEST_CASE("what a turn left beside the path that was taken is superseded too", "[memory]") {
  Tree t;
  const auto prompt = t.plant("ab", 1);
  const auto answer = t.plant("abcd", 1);  // its client drops the reasoning
  t.acquire("abxy");
  const auto next = t.plant("abxy", 2);
  t.tree.supersede(next.node, 2);
  CHECK(t.tree.node(prompt.node).superseded);
  CHECK(t.tree.node(answer.node).superseded);
  CHECK_FALSE(t.tree.node(next.node).superseded);
  t.release_all();
}

TEST_CASE("poison takes what the ticket planted and what grew on its KV, but nothing locked",
          "[memory]") {
  Tree t;
  const auto good = t.plant("ab", 1);
  t.plant("abcd", 2);
  const auto child = t.plant("abcdef", 3);
  t.acquire("abcdefgh");                                  // a reader of what ticket 3 made of it
  CHECK(t.tree.poison(key_of("abcd"), 2, t.freed) == 1);  // its own checkpoint only
  CHECK(t.tree.node(child.node).checkpoint);
  t.check();
  t.release_all();
  CHECK(t.tree.poison(key_of("abcd"), 2, t.freed) == 1);
  CHECK(t.match("abcdef").kv == 8);
  CHECK(t.tree.node(good.node).checkpoint);
  CHECK(t.tree.node_count() == 2);
  t.check();
}

TEST_CASE("keys whose pages collide are told apart", "[memory]") {
  memory::RadixTree tree({1, 1, 0});
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::vector<KeyElement> key{i * 0x100000001, i};
    const std::vector<PageId> pages{{uint32_t(2 * i), 1}, {uint32_t(2 * i + 1), 1}};
    REQUIRE(tree.insert({0, key, 2, pages, SlotId{uint32_t(i), 1}, 1}).first_new == 0);
  }
  for (uint64_t i = 0; i < 2000; ++i) {
    const Match match = tree.match({0, {i * 0x100000001, i, 5}}, 3, 3);
    REQUIRE(match.position == 2);
    REQUIRE(tree.node(*match.checkpoint).checkpoint->index == i);
  }
}
