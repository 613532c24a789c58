// Random histories of a cache, with and without host memory, against a list of prefixes and a
// worker that knows what every block ought to hold.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "cache_lab.hpp"

using memory::CacheKey;
using memory::KeyElement;
using tests::CacheLab;

namespace {

using Prefix = std::pair<uint64_t, std::vector<KeyElement>>;

// What a cache ought to answer, by looking at every prefix there is.
struct PrefixList {
  std::vector<Prefix> paths;  // of every node
  std::set<Prefix> checkpoints;
  struct Answer {
    uint32_t shared = 0, position = 0, branch = 0;
    bool staged = false;
  };
  Answer answer(const memory::Open& open, const memory::TreeConfig& config,
                const memory::HostStore& host) const {
    Answer best = on_device(open, config);
    const uint32_t device = best.shared;
    auto prefix = memory::root_prefix(open.key.name_space);
    bool there = true;  // every page so far is on the device or on the host
    for (uint32_t end = config.page_tokens; end <= std::min(open.restore_limit, open.positions);
         end += config.page_tokens) {
      prefix = memory::next_prefix(
          prefix,
          std::span(open.key.elements).subspan(end - config.page_tokens, config.page_tokens));
      there = there && (end <= device || host.find(memory::BlockKind::kPage, prefix));
      if (!there || end % config.grid != 0 || end <= best.position) continue;
      if (!host.find(memory::BlockKind::kState, prefix)) continue;
      best.position = end;
      best.staged = true;
      best.shared = std::max(device, end);
      if (best.branch <= end) best.branch = 0;
    }
    return best;
  }

  Answer on_device(const memory::Open& open, const memory::TreeConfig& config) const {
    Answer best;
    const auto& wanted = open.key.elements;
    for (const auto& [name_space, path] : paths) {
      if (name_space != open.key.name_space) continue;
      uint32_t equal = 0;
      while (equal < path.size() && equal < wanted.size() && equal < open.positions &&
             path[equal] == wanted[equal]) {
        ++equal;
      }
      best.shared = std::max(best.shared, equal / config.page_tokens * config.page_tokens);
    }
    const uint32_t branch = best.shared / config.grid * config.grid;
    bool planted = false;
    for (const auto& [name_space, path] : checkpoints) {
      if (name_space != open.key.name_space || path.size() > best.shared) continue;
      if (!std::equal(path.begin(), path.end(), wanted.begin())) continue;
      const auto position = static_cast<uint32_t>(path.size());
      planted = planted || position == branch;
      if (position <= open.restore_limit) best.position = std::max(best.position, position);
    }
    if (branch > best.position && !planted) best.branch = branch;
    return best;
  }
};

class History {
 public:
  explicit History(uint32_t seed)
      : rng_(seed),
        config_(make_config()),
        lab_(config_, make_pool(), make_policy(), rng_() % 3 == 0 ? 0 : 64 * (rng_() % 400)) {}

  void step() {
    switch (rng_() % 11) {
      case 0:
      case 1:
      case 2:
        open();
        break;
      case 3:
        if (auto* run = any()) lab_.restore(*run);
        break;
      case 4:
        if (auto* run = any()) grow(*run);
        break;
      case 5:
      case 6:
      case 7:
        if (auto* run = any()) donate(*run);
        break;
      case 8:
        forget();
        break;
      default:
        drop();
    }
    check();
  }

  void finish() {
    while (!runs_.empty()) drop();
    check();
    spill();
    const auto owners = lab_.cache.owners();
    REQUIRE(owners.states.held == 0);
    REQUIRE(owners.pages.held == 0);
    REQUIRE(owners.states.evictable == owners.states.cached);
    REQUIRE(owners.pages.evictable == owners.pages.cached);
    const uint32_t most = lab_.cache.positions_max();
    const auto alone = lab_.open(++ticket_, random_key(), most, 0, 0);
    REQUIRE(alone);  // all of it
    REQUIRE_FALSE(lab_.open(++ticket_, random_key(), most + 1, 0, 0));
    lab_.drop(*alone);
    lab_.flush();
    REQUIRE(lab_.cache.host().empty());
    REQUIRE(lab_.cache.owners().host.bytes == 0);
    REQUIRE(lab_.cache.owners().pages.cached == 0);
  }
  const memory::HybridCache& cache() const { return lab_.cache; }

 private:
  memory::TreeConfig make_config() {
    const uint32_t page = 1u << rng_() % 3;
    return {page, page * (1 + static_cast<uint32_t>(rng_() % 3)),
            rng_() % 2 == 0 ? 0 : 2 + static_cast<uint32_t>(rng_() % 3)};
  }
  std::unique_ptr<memory::BlockPool> make_pool() {
    const memory::ArenaConfig arena{64 * (60 + rng_() % 90), 64 * (1 + rng_() % 7), 64};
    return rng_() % 3 == 0 ? memory::make_split_pool(arena, 0.4) : memory::make_unified_pool(arena);
  }
  std::unique_ptr<memory::EvictionPolicy> make_policy() {
    return memory::make_eviction_policy(rng_() % 3 == 0 ? "lru" : "benefit", {1.0, 0.01, 192, 64});
  }

  // Mostly a prefix of something known, and then something else.
  CacheKey random_key() {
    CacheKey key{rng_() % 2, {}};
    if (!keys_.empty() && rng_() % 8 != 0) {
      key = keys_[rng_() % keys_.size()];
      if (rng_() % 3 == 0) key.elements.resize(rng_() % (key.elements.size() + 1));
      if (rng_() % 16 == 0) key.name_space ^= 1;
    }
    extend(key, 1 + static_cast<uint32_t>(rng_() % 12));
    if (keys_.size() < 40)
      keys_.push_back(key);
    else
      keys_[rng_() % 40] = key;
    return key;
  }
  void extend(CacheKey& key, uint32_t most) {
    for (uint32_t i = 0; i < most && key.elements.size() < 60; ++i) {
      key.elements.push_back(rng_() % 8 == 0 ? rng_() % 3 : 0);
    }
    if (key.elements.empty()) key.elements.push_back(1);
  }
  // What a hash of one of its prefixes stands for.
  void learn(const CacheKey& key) {
    auto prefix = memory::root_prefix(key.name_space);
    const std::span<const KeyElement> all(key.elements);
    for (size_t end = config_.page_tokens; end <= all.size(); end += config_.page_tokens) {
      prefix =
          memory::next_prefix(prefix, all.subspan(end - config_.page_tokens, config_.page_tokens));
      names_[prefix] = {key.name_space, {all.begin(), all.begin() + static_cast<long>(end)}};
    }
  }
  CacheLab::Running* any() { return runs_.empty() ? nullptr : &runs_[rng_() % runs_.size()]; }

  void open() {
    if (runs_.size() > 6) return;
    memory::Open open{{++ticket_}, ticket_, random_key(), 0, uint32_t(rng_() % 3), 0};
    const auto length = static_cast<uint32_t>(open.key.elements.size());
    open.positions =
        rng_() % 4 == 0 ? uint32_t(rng_() % (length + 1)) : length + uint32_t(rng_() % 6);
    open.restore_limit = rng_() % 4 == 0 ? uint32_t(rng_() % length) : length - 1;
    const PrefixList::Answer expected = list().answer(open, config_, lab_.cache.host());
    learn(open.key);
    auto run = lab_.open(ticket_, open.key, open.positions, open.snapshots, open.restore_limit);
    if (!run) {
      // Not even without its prefix and everything that nobody uses.
      const uint64_t pages = (open.positions + config_.page_tokens - 1) / config_.page_tokens;
      const auto& tree = lab_.cache.tree();
      REQUIRE_FALSE(
          lab_.cache.pool().fits({1, pages}, {tree.evictable_slots(), tree.evictable_pages()}));
      return;
    }
    REQUIRE(run->opened.shared == expected.shared);
    REQUIRE(run->opened.staged == expected.staged);
    if (lab_.cache.recent().back().reason == memory::MissReason::kNoRoom) {
      REQUIRE(expected.position > 0);
      REQUIRE_FALSE(run->opened.checkpoint);
    } else {
      REQUIRE(run->opened.position == expected.position);
      REQUIRE(run->opened.checkpoint.has_value() == (expected.position > 0 && !expected.staged));
      REQUIRE(run->opened.branch == expected.branch);
    }
    runs_.push_back(std::move(*run));
  }

  void grow(CacheLab::Running& run) {
    const auto pages = static_cast<uint32_t>(rng_() % 4);
    const auto& tree = lab_.cache.tree();
    const bool fits =
        lab_.cache.pool().fits({0, pages}, {tree.evictable_slots(), tree.evictable_pages()});
    REQUIRE(lab_.grow(run, pages) == fits);
    lab_.compute(run);
  }

  void donate(CacheLab::Running& run) {
    if (run.opened.snapshots.empty()) return;
    lab_.restore(run);
    if (rng_() % 2 == 0) extend(run.key, static_cast<uint32_t>(rng_() % 8));  // it decoded
    learn(run.key);
    lab_.compute(run);
    const size_t most =
        std::min(run.key.elements.size(), run.opened.pages.size() * config_.page_tokens);
    const auto steps = static_cast<uint32_t>(most) / config_.grid;
    if (steps == 0) return;
    const uint32_t back = rng_() % 4 == 0 ? uint32_t(rng_() % steps) : 0;
    const uint32_t position = (steps - back) * config_.grid;
    const Prefix prefix{run.key.name_space,
                        {run.key.elements.begin(), run.key.elements.begin() + position}};
    const bool known = list().checkpoints.count(prefix) != 0;
    const size_t which = rng_() % run.opened.snapshots.size();
    const memory::SlotId slot = run.opened.snapshots[which];
    const bool refill = rng_() % 2 == 0;
    const auto answer = lab_.donate(run, which, position, refill);
    if (!refill) REQUIRE_FALSE(answer);
    if (refill && known) REQUIRE(answer == slot);
    if (refill && !known && answer) REQUIRE(*answer != slot);
    if (!known) ++planted_;
    donated_.insert(prefix);
  }

  void forget() {
    const auto& copies = lab_.cache.host().copies();
    if (copies.empty() || rng_() % 4 != 0) return;
    const auto block = std::next(copies.begin(), long(rng_() % copies.size()))->first;
    lab_.send(memory::Forget{{block, {block.value + 1'000'000}}});
    REQUIRE(copies.count(block) == 0);
  }

  // What would be written at the end is right, behind what it needs, and fits into host memory.
  void spill() {
    memory::CacheReply reply;
    lab_.cache.spill(1, reply);
    lab_.arena.run(reply.commands);
    std::set<memory::PrefixHash> pages;
    memory::HostStore reader({lab_.cache.host().bytes_max(),
                              lab_.cache.host().size(memory::BlockKind::kState),
                              lab_.cache.host().size(memory::BlockKind::kPage)});
    for (const auto& [item, tag] : lab_.arena.spilled()) {
      const auto& [name_space, elements] = names_.at(item.at.prefix);
      const bool state = item.kind == memory::BlockKind::kState;
      const uint64_t kind = state ? tests::kStateTag : tests::kPageTag;
      REQUIRE(tag == tests::prefix_tag(name_space, elements, kind));
      REQUIRE(
          (pages.count(item.at.needs) == 1 || (!state && elements.size() == config_.page_tokens)));
      if (!state) pages.insert(item.at.prefix);
      REQUIRE(reader.adopt(item.kind, item.at));
    }
    reader.check();
  }

  void drop() {
    if (runs_.empty()) return;
    std::swap(runs_[rng_() % runs_.size()], runs_.back());
    const uint64_t ticket = runs_.back().opened.ticket;
    const uint64_t name_space = runs_.back().key.name_space;
    const bool poisoned = rng_() % 8 == 0;
    lab_.drop(runs_.back(), poisoned);
    runs_.pop_back();
    if (!poisoned) return;
    for (const auto& [block, copy] : lab_.cache.host().copies()) {
      REQUIRE(copy.at.name_space != name_space);
    }
    lab_.cache.tree().visit([&](memory::NodeId, const memory::RadixNode& node) {
      if (node.root) return;
      if (node.kv_planter == ticket) REQUIRE(node.kv_locks > 0);
      if (node.checkpoint && node.checkpoint_planter == ticket) REQUIRE(node.state_locks > 0);
    });
  }

  PrefixList list() const {
    PrefixList list;
    lab_.cache.tree().visit([&](memory::NodeId id, const memory::RadixNode& node) {
      if (node.root) return;
      list.paths.push_back({node.name_space, lab_.path(id)});
      if (node.checkpoint) list.checkpoints.insert(list.paths.back());
    });
    return list;
  }

  void check() {
    lab_.check_tree();
    for (const auto& run : runs_) lab_.check(run);
    const PrefixList now = list();
    for (const auto& prefix : now.checkpoints) REQUIRE(donated_.count(prefix) != 0);
    uint64_t evicted = 0;
    for (const uint64_t count : lab_.cache.counters().evicted_slots) evicted += count;
    REQUIRE(now.checkpoints.size() + evicted == planted_);  // what is gone was evicted, no more
    for (const auto& [block, copy] : lab_.cache.host().copies()) {
      const auto& [name_space, elements] = names_.at(copy.at.prefix);
      REQUIRE(copy.at.name_space == name_space);
      REQUIRE(copy.at.position == elements.size());
      const bool state = copy.kind == memory::BlockKind::kState;
      const uint64_t kind = state ? tests::kStateTag : tests::kPageTag;
      REQUIRE(lab_.arena.host().at(block) == tests::prefix_tag(name_space, elements, kind));
    }
  }

  std::mt19937 rng_;
  memory::TreeConfig config_;
  CacheLab lab_;
  std::vector<CacheLab::Running> runs_;
  std::vector<CacheKey> keys_;
  std::set<Prefix> donated_;
  std::map<memory::PrefixHash, Prefix> names_;
  uint64_t ticket_ = 0, planted_ = 0;
};

}  // namespace

TEST_CASE("a hybrid cache answers like a list of prefixes and never hands out wrong bytes",
          "[memory][property]") {
  memory::CacheCounters sum;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    History history(seed);
    for (int step = 0; step < 1000; ++step) history.step();
    history.finish();
    const memory::CacheCounters counters = history.cache().counters();
    sum.host_restored += counters.host_restored;
    sum.host_evicted[0] += counters.host_evicted[0];
    sum.host_evicted[1] += counters.host_evicted[1];
    sum.staged_in[1] += counters.staged_in[1];
  }
  CHECK(sum.host_restored > 1000);  // the histories went where they should
  CHECK(sum.host_evicted[0] > 300);
  CHECK(sum.host_evicted[1] > 1000);
  CHECK(sum.staged_in[1] > 1000);
}
