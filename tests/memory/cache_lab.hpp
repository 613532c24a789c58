// A hybrid cache with a small worker behind it: sequences "compute" tags that depend on their whole
// prefix, so whatever the cache hands out is known to be right or wrong by looking at it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arena_model.hpp"
#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"

namespace tests {

inline uint64_t prefix_tag(uint64_t name_space, std::span<const memory::KeyElement> prefix,
                           uint64_t kind) {
  uint64_t hash = 0x9e3779b97f4a7c15 + name_space * 31 + kind;
  for (const auto element : prefix) hash = (hash ^ element) * 0xff51afd7ed558ccd + 1;
  return hash | 1;  // never 0, which means untouched
}
constexpr uint64_t kStateTag = 1, kPageTag = 2;

class CacheLab {
 public:
  struct Running {
    memory::CacheKey key;   // all it knows
    size_t told = 0;        // of the key's elements: the cache knows them
    memory::Opened opened;  // pages and snapshots are kept up to date
    bool restored = false;
  };

  CacheLab(const memory::TreeConfig& config, std::unique_ptr<memory::BlockPool> pool,
           std::unique_ptr<memory::EvictionPolicy> policy, uint64_t host_bytes = 0)
      : arena(*pool),
        cache(config, std::move(pool), std::move(policy), host_bytes),
        config_(config) {}

  memory::CacheReply send(const memory::CacheRequest& request) {
    memory::CacheReply reply;
    cache.handle(request, reply);
    arena.run(reply.commands);
    cache.check();
    VERIFY(arena.host().size() == cache.host().copies().size());
    return reply;
  }
  void flush() {
    memory::CacheReply reply;
    cache.flush(reply);
    arena.run(reply.commands);
    cache.check();
  }

  // Empty: refused. What it was given is checked, and its pages are computed up to its key's end.
  std::optional<Running> open(uint64_t ticket, memory::CacheKey key, uint32_t positions,
                              uint32_t snapshots, uint32_t restore_limit) {
    const auto reply =
        send(memory::Open{{ticket}, ticket, key, positions, snapshots, restore_limit});
    VERIFY(reply.answers.size() == 1);
    if (std::holds_alternative<memory::Refused>(reply.answers[0])) {
      for (const auto& command : reply.commands)  // what was evicted all the same
        VERIFY(std::holds_alternative<memory::StageOut>(command) ||
               std::holds_alternative<memory::Discard>(command));
      return std::nullopt;
    }
    Running run{key, key.elements.size(), std::get<memory::Opened>(reply.answers[0])};
    VERIFY(run.opened.pages.size() == (positions + config_.page_tokens - 1) / config_.page_tokens);
    if (run.opened.staged) {
      VERIFY(arena.read(run.opened.working) == state_tag(run.key, run.opened.position));
    }
    compute(run);
    return run;
  }

  // Writes the pages that are the sequence's own, as far as its key reaches.
  void compute(Running& run) {
    for (uint32_t i = run.opened.shared / config_.page_tokens; i < whole_pages(run); ++i) {
      if (borrowed(run, i)) continue;
      arena.write(run.opened.pages[i], page_tag(run.key, i));
    }
  }

  void restore(Running& run) {
    if (run.restored) return;
    run.restored = true;
    if (!run.opened.checkpoint) return;
    VERIFY(arena.read(*run.opened.checkpoint) == state_tag(run.key, run.opened.position));
    arena.write(run.opened.working, state_tag(run.key, run.opened.position));
    send(memory::Restored{run.opened.sequence, run.opened.ticket});
  }

  // Donates snapshot slot `which`. Returns the answer's slot.
  std::optional<memory::SlotId> donate(Running& run, size_t which, uint32_t position, bool refill) {
    const memory::SlotId slot = run.opened.snapshots.at(which);
    arena.write(slot, state_tag(run.key, position));
    run.opened.snapshots.erase(run.opened.snapshots.begin() + static_cast<long>(which));
    std::vector<memory::KeyElement> tail(run.key.elements.begin() + static_cast<long>(run.told),
                                         run.key.elements.end());
    run.told = run.key.elements.size();
    const auto reply = send(memory::Donate{run.opened.sequence, run.opened.ticket, slot, position,
                                           std::move(tail), refill});
    VERIFY(reply.answers.size() == 1);
    const auto back = std::get<memory::Refilled>(reply.answers[0]).slot;
    if (back) run.opened.snapshots.push_back(*back);
    return back;
  }

  bool grow(Running& run, uint32_t pages) {
    const auto reply = send(memory::Grow{run.opened.sequence, run.opened.ticket, pages});
    if (std::holds_alternative<memory::Refused>(reply.answers.at(0))) return false;
    const auto& more = std::get<memory::Grown>(reply.answers[0]).pages;
    VERIFY(more.size() == pages);
    run.opened.pages.insert(run.opened.pages.end(), more.begin(), more.end());
    return true;
  }

  void drop(const Running& run, bool poisoned = false) {
    const auto reply = send(memory::Drop{run.opened.sequence, run.opened.ticket, poisoned});
    VERIFY(reply.answers.empty());
  }

  // Everything the sequence may read is what it would have computed itself.
  void check(const Running& run) const {
    for (uint32_t i = 0; i < whole_pages(run); ++i) {
      VERIFY(arena.read(run.opened.pages[i]) == page_tag(run.key, i));
    }
    if (run.opened.checkpoint && !run.restored) {
      VERIFY(arena.read(*run.opened.checkpoint) == state_tag(run.key, run.opened.position));
    }
  }

  // Every node's pages and checkpoint are those of its path.
  void check_tree() const {
    cache.tree().visit([&](memory::NodeId id, const memory::RadixNode& node) {
      if (node.root) return;
      const memory::CacheKey key{node.name_space, path(id)};
      for (uint32_t i = 0; i < node.pages.size(); ++i) {
        VERIFY(arena.read(node.pages[i]) == page_tag(key, node.begin / config_.page_tokens + i));
      }
      if (node.checkpoint) VERIFY(arena.read(*node.checkpoint) == state_tag(key, node.end));
    });
  }

  std::vector<memory::KeyElement> path(memory::NodeId id) const {
    std::vector<memory::KeyElement> key;
    for (; !cache.tree().node(id).root; id = cache.tree().node(id).parent) {
      const auto& span = cache.tree().node(id).span;
      key.insert(key.begin(), span.begin(), span.end());
    }
    return key;
  }

  ArenaModel arena;
  memory::HybridCache cache;

 private:
  uint32_t whole_pages(const Running& run) const {
    const auto known = static_cast<uint32_t>(run.key.elements.size()) / config_.page_tokens;
    return std::min(known, static_cast<uint32_t>(run.opened.pages.size()));
  }
  bool borrowed(const Running& run, uint32_t page) const {
    return cache.ledger().all().at(run.opened.ticket).borrowed[page];
  }
  uint64_t page_tag(const memory::CacheKey& key, uint32_t page) const {
    const size_t end = (page + 1) * config_.page_tokens;
    return prefix_tag(key.name_space, std::span(key.elements).first(end), kPageTag);
  }
  uint64_t state_tag(const memory::CacheKey& key, uint32_t position) const {
    return prefix_tag(key.name_space, std::span(key.elements).first(position), kStateTag);
  }

  memory::TreeConfig config_;
};

}  // namespace tests
