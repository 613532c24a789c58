// One arena that states and pages share against every fixed division of the same bytes, at the byte
// ratio of a large model (54 MB a state, 27 KB a position): how many requests get in.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "memory/hybrid_cache.hpp"

using namespace memory;

namespace {

constexpr uint64_t kStateBytes = 54'000'000, kPageBytes = 64 * 27'000, kArenaBytes = 8'000'000'000;
constexpr uint32_t kPage = 64, kSteps = 1200;

struct Load {
  uint32_t positions = 0, steps = 0;  // what a request holds, and for how long
};
using Mix = std::vector<Load>;  // in the order of arrival; the queue is never empty

Load drawn(std::mt19937_64& rng, uint32_t positions, uint32_t steps) {
  const auto around = [&](uint32_t mean) {
    return std::uniform_int_distribution<uint32_t>(mean / 2, mean * 3 / 2)(rng);
  };
  return {around(positions), around(steps)};
}

constexpr uint32_t kShort = 400, kLong = 60'000, kHeld = 100;

Mix many_short(std::mt19937_64& rng, size_t count) {
  Mix mix;
  while (mix.size() < count) mix.push_back(drawn(rng, kShort, kHeld));
  return mix;
}
Mix few_long(std::mt19937_64& rng, size_t count) {
  Mix mix;
  while (mix.size() < count) mix.push_back(drawn(rng, kLong, kHeld));
  return mix;
}
Mix alternating(std::mt19937_64& rng, size_t count) {
  Mix mix;
  while (mix.size() < count) {
    for (int i = 0; i < 1000; ++i) mix.push_back(drawn(rng, kShort, kHeld));
    for (int i = 0; i < 50; ++i) mix.push_back(drawn(rng, kLong, kHeld));
  }
  return mix;
}

// Requests that were admitted, first come, first served, within kSteps.
size_t admitted(const Mix& mix, std::unique_ptr<BlockPool> pool) {
  HybridCache cache({kPage, kPage, 0}, std::move(pool), make_lru_policy());
  struct Running {
    uint64_t ticket = 0;
    uint32_t ends = 0;
  };
  std::deque<Running> running;
  size_t next = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    CacheReply reply;
    std::erase_if(running, [&](const Running& one) {
      if (one.ends > step) return false;
      cache.handle(Drop{{one.ticket}, one.ticket, false}, reply);
      return true;
    });
    while (next < mix.size()) {
      const uint64_t ticket = next + 1;
      reply.answers.clear();
      cache.handle(Open{{ticket}, ticket, {ticket, {1, 2}}, mix[next].positions, 0, 1}, reply);
      if (std::holds_alternative<Refused>(reply.answers.at(0))) break;
      running.push_back({ticket, step + mix[next].steps});
      ++next;
    }
  }
  REQUIRE(next < mix.size());  // the memory was the limit
  return next;
}

}  // namespace

TEST_CASE("One unified arena admits what the best split does, on every mix", "[memory]") {
  const ArenaConfig arena{kArenaBytes, kStateBytes, kPageBytes};
  const auto [name, make, count] = GENERATE(
      table<std::string, Mix (*)(std::mt19937_64&, size_t), size_t>(
          {{"many short", many_short, 4000},
           {"few long", few_long, 400},
           {"alternating", alternating, 4000}}));
  std::mt19937_64 rng(11);
  const Mix mix = make(rng, count);
  const size_t unified = admitted(mix, make_unified_pool(arena));
  size_t best = 0;
  double best_share = 0;
  for (double share = 0.1; share < 0.95; share += 0.1) {
    const size_t split = admitted(mix, make_split_pool(arena, share));
    if (split > best) {
      best = split;
      best_share = share;
    }
  }
  CAPTURE(name, unified, best, best_share);
  CHECK(unified >= best);
}
