// What fits: sharded KV positions, one arena against two, inputs kept instead of states.
#include <algorithm>
#include <cmath>
#include <memory>

#include "memory/block_pool.hpp"
#include "runtime/sim/figure_inputs.hpp"

namespace runtime {
namespace {

constexpr uint64_t kPageTokens = 64;
constexpr double kStatesToKv = 0.9;  // bytes of states over bytes of KV in a split arena (a flag)
constexpr double kStateShare = kStatesToKv / (1 + kStatesToKv);
constexpr uint64_t kSlotsPerRequest = 4;
constexpr double kDraftTokensAndOne = 8;

uint64_t whole(double bytes) { return static_cast<uint64_t>(std::llround(bytes)); }

memory::ArenaConfig arena(const RankMemory& memory, double arena_bytes) {
  return {whole(arena_bytes), whole(memory.state_bytes),
          whole(memory.kv_position_bytes * kPageTokens)};
}

// Logical tokens of KV in the KV part of a split arena.
double split_kv_tokens(const RankMemory& memory, double arena_bytes) {
  const auto pool = memory::make_split_pool(arena(memory, arena_bytes), kStateShare);
  return static_cast<double>(pool->counts().pages.total) * kPageTokens * memory.context;
}

void add_capacity(const FigureInputs& inputs, FigureGroup group) {
  const RankMemory tp8 = inputs.model(inputs.gb300, "TP8").memory();
  const RankMemory dcp8 = inputs.model(inputs.gb300, "TP8xDCP8").memory();
  // Given: the arena in which TP8 has 1.5M tokens. DCP8's is smaller by what it replicates.
  const double tp8_arena = 1.5e6 * tp8.kv_bytes_per_token() / (1 - kStateShare);
  const double dcp8_arena = tp8_arena - (dcp8.weight_bytes - tp8.weight_bytes);
  const double ratio = split_kv_tokens(dcp8, dcp8_arena) / split_kv_tokens(tp8, tp8_arena);
  group.add("KV tokens, DCP8 over TP8", "ratio", ratio, "our pool, 1.5M tokens of TP8 given")
      .against(7.9)
      .at_least(7.6)
      .at_most(8.0)
      .is(FigureKind::kCount);
  group
      .add("what DCP8 replicates", "GB a rank", (dcp8.weight_bytes - tp8.weight_bytes) / 1e9,
           "queries of all heads, absorbed")
      .is(FigureKind::kCount);
  group.add("a state on a rank of TP8", "MB", tp8.state_bytes / 1e6, "the article: about 54")
      .against(54)
      .within(0.1)
      .is(FigureKind::kCount);
  group.add("KV of a token", "KB", tp8.kv_bytes_per_token() / 1e3, "the article: about 27")
      .against(27)
      .within(0.1)
      .is(FigureKind::kCount);
  group
      .add("KV tokens of TP8, bf16", "M", split_kv_tokens(tp8, tp8.arena_bytes) / 1e6,
           "depends on two flags that are not published: 1.5M is taken as given")
      .is(FigureKind::kCount);
}

// Requests of `context` tokens that a pool holds at once.
double requests_in(const memory::BlockPool& pool, uint64_t context) {
  const uint64_t pages = (context + kPageTokens - 1) / kPageTokens;
  uint64_t fit = 0, step = uint64_t{1} << 32;
  for (; step > 0; step /= 2) {
    if (pool.fits({(fit + step) * kSlotsPerRequest, (fit + step) * pages})) fit += step;
  }
  return static_cast<double>(fit);
}

void add_unified(const FigureInputs& inputs, FigureGroup group) {
  const RankMemory rank = inputs.model(inputs.gb300, "TP8").memory();
  const auto config = arena(rank, rank.arena_bytes);
  const auto unified = memory::make_unified_pool(config);
  const auto split = memory::make_split_pool(config, kStateShare);
  const auto gain = [&](uint64_t context) {
    return requests_in(*unified, context) / requests_in(*split, context);
  };
  // Where the fixed split is just right.
  const double balance =
      kSlotsPerRequest * rank.state_bytes / (kStatesToKv * rank.kv_bytes_per_token());
  const auto level = whole(balance / kPageTokens) * kPageTokens;
  double least = gain(kPageTokens);
  for (uint64_t context = 256; context <= 262144; context *= 2) {
    least = std::min(least, gain(context));
  }
  const auto count = FigureKind::kCount;
  group.add("requests, unified over split, 1k", "ratio", gain(1024), "our pools, 4 slots a request")
      .against("capacity follows the workload")
      .at_least(1.7)
      .is(count);
  group.add("same, 128k", "ratio", gain(131072)).at_least(1.7).is(count);
  group
      .add("same, where the split is just right", "ratio", gain(level),
           std::to_string(level) + " tokens")
      .at_least(0.98)
      .at_most(1.02)
      .is(count);
  group.add("same, the least of 64 to 256k", "ratio", std::min(least, gain(level)))
      .at_least(0.98)
      .is(count);
}

void add_replay(const FigureInputs& inputs, FigureGroup group) {
  const RankMemory rank = inputs.model(inputs.gb300, "TP8").memory();
  const double heads = inputs.k3.kda_heads / 8, layers = inputs.k3.kda_layers();
  const double window = kDraftTokensAndOne * inputs.k3.kda_d * inputs.k3.kda_d * 4;
  // v, k and the gate of a step in fp32, and beta.
  const double inputs_window = kDraftTokensAndOne * (3 * inputs.k3.kda_d + 1) * 4;
  const double held = kSlotsPerRequest * rank.state_bytes;
  const double ratio = (held + layers * heads * window) / (held + layers * heads * inputs_window);
  group
      .add("draft window, states over inputs", "ratio", window / inputs_window,
           "the article keeps 16 KB where ours takes 12.3")
      .against(32)
      .at_least(32)
      .is(FigureKind::kCount);
  group.add("requests that fit, inputs over states", "ratio", ratio, "short contexts, 4 slots each")
      .against("several-fold")
      .at_least(2)
      .is(FigureKind::kCount);
}

}  // namespace

void add_memory_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures) {
  add_capacity(inputs, {"(b) capacity, 8 GB300 (the article)", figures});
  add_unified(inputs, {"(f) unified memory, a rank of TP8", figures});
  add_replay(inputs, {"(f) speculation's states, a rank of TP8 (the article)", figures});
}

}  // namespace runtime
