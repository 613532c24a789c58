// Which checkpoints a full cache should keep: LRU, ours and one that knows the future, with the
// same admission, on recorded traffic at the byte ratio of a large model (54 MB a state, 27 KB a
// token).
//   bench-eviction TRACES_FOLDER [SEED [SAVING_POWER SUPERSEDED]...]
// With several pairs of weights, one line of pooled results for each.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>

#include "eviction_traces.hpp"
#include "kernels/base/verify.hpp"
#include "memory/hybrid_cache.hpp"

namespace {

using memory::NodeId;

constexpr uint64_t kStateBytes = 54'000'000, kTokenBytes = 27'000, kGigabyte = 1'000'000'000;
// 2 * 1.04e11 active weights; 24 attention layers * 96 heads * 2 * (576 + 512).
constexpr double kFlopsPerToken = 2.08e11, kFlopsPerPair = 5.0e6;

memory::CacheCosts costs_of(const bench::Trace& trace) {
  const double unit = trace.tokens_per_element;
  return {kFlopsPerToken * unit, kFlopsPerPair * unit * unit, kStateBytes,
          kTokenBytes * trace.tokens_per_element * trace.page_elements};
}

double replay_flops(const memory::CacheCosts& costs, double from, double to) {
  return costs.flops_per_token * (to - from) +
         costs.flops_per_token_pair * (to * to - from * from) / 2;
}

// Where each request would restore if nothing were ever evicted, and who planted it.
struct Ideal {
  uint32_t position = 0;
  uint64_t planter = 0;
};

struct Outcome {
  double tokens = 0, hit_tokens = 0, flops_saved = 0;
  uint64_t refused = 0;
  std::vector<Ideal> restored;
  double rate() const { return 100 * hit_tokens / tokens; }
};

// `now`: the request being served, for a policy that looks ahead.
Outcome replay(const bench::Trace& trace, uint64_t bytes,
               std::unique_ptr<memory::EvictionPolicy> policy, uint64_t& now) {
  const memory::CacheCosts costs = costs_of(trace);
  const uint32_t page = trace.page_elements;
  const double unit = trace.tokens_per_element;
  memory::HybridCache cache({page, page, 0},
                            memory::make_unified_pool({bytes, costs.state_bytes, costs.page_bytes}),
                            std::move(policy));
  Outcome outcome;
  for (uint64_t i = 0; i < trace.requests.size(); ++i) {
    const auto& request = trace.requests[i];
    const uint64_t ticket = i + 1;
    now = i;
    const auto prompt = static_cast<uint32_t>(request.prompt.size());
    const auto all = prompt + static_cast<uint32_t>(request.output.size());
    memory::CacheReply reply;
    cache.handle(memory::Open{{ticket}, ticket, {0, request.prompt}, all, 1, prompt - 1}, reply);
    outcome.tokens += unit * prompt;
    outcome.restored.emplace_back();
    const auto* opened = std::get_if<memory::Opened>(&reply.answers.at(0));
    if (opened == nullptr) {
      ++outcome.refused;
      continue;
    }
    const uint32_t position = opened->position;
    outcome.hit_tokens += unit * position;
    outcome.flops_saved += replay_flops(costs, 0, position);
    if (position > 0) {
      cache.tree().visit([&](NodeId, const memory::RadixNode& node) {
        if (node.checkpoint == opened->checkpoint) {
          outcome.restored.back() = {position, node.checkpoint_planter};
        }
      });
    }
    cache.handle(memory::Restored{{ticket}, ticket}, reply);
    std::vector<uint32_t> plan{opened->branch, (prompt - 1) / page * page, (all - 1) / page * page};
    std::sort(plan.begin(), plan.end());
    plan.erase(std::unique(plan.begin(), plan.end()), plan.end());
    auto snapshots = opened->snapshots;
    bool told = false;
    for (const uint32_t target : plan) {
      if (target <= position || snapshots.empty()) continue;
      reply.answers.clear();
      cache.handle(memory::Donate{{ticket},
                                  ticket,
                                  snapshots.back(),
                                  target,
                                  told ? std::vector<memory::KeyElement>{} : request.output,
                                  true},
                   reply);
      told = true;
      snapshots.pop_back();
      const auto back = std::get<memory::Refilled>(reply.answers.at(0)).slot;
      if (back) snapshots.push_back(*back);
    }
    cache.handle(memory::Drop{{ticket}, ticket, false}, reply);
  }
  return outcome;
}

// Knows every request to come. Evicts what saves least per byte and per request until its next use.
class ClairvoyantPolicy : public memory::EvictionPolicy {
 public:
  ClairvoyantPolicy(const bench::Trace& trace, const std::vector<Ideal>& ideal, const uint64_t& now)
      : trace_(trace),
        ideal_(ideal),
        now_(now),
        costs_(costs_of(trace)),
        chains_(trace.requests.size()) {
    for (size_t i = 0; i < chains_.size(); ++i) {
      auto key = trace.requests[i].prompt;
      key.insert(key.end(), trace.requests[i].output.begin(), trace.requests[i].output.end());
      uint64_t hash = 1;
      for (size_t at = 0; at < key.size(); ++at) {
        hash = (hash ^ key[at]) * 0xff51afd7ed558ccd;
        hash ^= hash >> 29;
        if ((at + 1) % trace.page_elements == 0) chains_[i].push_back(hash);
      }
      keys_.push_back({0, std::move(key)});
    }
  }

  void refresh(const memory::RadixTree& tree, std::span<const NodeId> changed) override {
    for (const NodeId id : changed) {
      if (id.index >= next_.size()) next_.resize(id.index + 1);
      next_[id.index].reset();
      if (!tree.node(id).alive || tree.node(id).root) continue;
      for (NodeId up = tree.node(id).parent; !tree.node(up).root; up = tree.node(up).parent) {
        if (up.index < next_.size()) next_[up.index].reset();
      }
    }
    next_.resize(std::max<size_t>(next_.size(), tree.nodes_max()));
  }

  std::optional<NodeId> pick(const memory::RadixTree& tree, memory::Shortage) override {
    std::optional<NodeId> best;
    double least = 0;
    tree.visit([&](NodeId id, const memory::RadixNode& node) {
      if (!tree.evictable(id)) return;
      auto& next = next_[id.index];
      if (!next || *next <= now_) next = next_use(tree, node);
      double score = 0;
      if (*next < trace_.requests.size()) {
        const auto bundle = tree.bundle(id);
        const double bytes = static_cast<double>(costs_.state_bytes) +
                             static_cast<double>(costs_.page_bytes) * bundle.pages;
        score = replay_flops(costs_, tree.checkpoint_above(id), node.end) / bytes /
                static_cast<double>(*next - now_);
      }
      if (!best || score < least) {
        best = id;
        least = score;
      }
    });
    return best;
  }

 private:
  // The first request from now on for which `node` is the checkpoint to restore.
  size_t next_use(const memory::RadixTree& tree, const memory::RadixNode& node) {
    const uint64_t planter = node.checkpoint_planter - 1;
    const uint32_t page = trace_.page_elements;
    for (const uint32_t j : passing(chains_[planter].at(node.end / page - 1), node.end / page)) {
      const auto prompt = static_cast<uint32_t>(trace_.requests[j].prompt.size());
      if (j <= now_ || node.end > prompt - 1) continue;
      const Ideal& ideal = ideal_[j];
      if (ideal.position == node.end) return j;
      if (ideal.position > node.end && ideal.planter - 1 > now_) continue;  // a better one will be
      if (tree.match(keys_[j], prompt, prompt - 1).position == node.end) return j;
    }
    return trace_.requests.size();
  }

  const std::vector<uint32_t>& passing(uint64_t hash, size_t pages) {
    auto& list = passing_[hash];
    if (list.empty()) {
      for (uint32_t j = 0; j < chains_.size(); ++j) {
        if (chains_[j].size() >= pages && chains_[j][pages - 1] == hash) list.push_back(j);
      }
    }
    return list;
  }

  const bench::Trace& trace_;
  const std::vector<Ideal>& ideal_;
  const uint64_t& now_;  // the request being served
  memory::CacheCosts costs_;
  std::vector<std::vector<uint64_t>> chains_;  // by request: a hash per page of its prefix
  std::vector<memory::CacheKey> keys_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> passing_;
  std::vector<std::optional<size_t>> next_;  // by node
};

struct Totals {
  memory::BenefitWeights weights;
  double gap = 0, recovered = 0, worst = 0, least_saved = 1e9;
};

void compare(const bench::Trace& trace, std::initializer_list<uint64_t> gigabytes,
             std::vector<Totals>& totals) {
  const auto costs = costs_of(trace);
  uint64_t now = 0;
  const Outcome all = replay(trace, 2000 * kGigabyte, memory::make_lru_policy(), now);
  for (const uint64_t size : gigabytes) {
    const uint64_t bytes = size * kGigabyte;
    const Outcome lru = replay(trace, bytes, memory::make_lru_policy(), now);
    const Outcome best =
        replay(trace, bytes, std::make_unique<ClairvoyantPolicy>(trace, all.restored, now), now);
    std::printf("%-20s %4lu GB %5zu requests: unbounded %5.1f  lru %5.1f  clairvoyant %5.1f  ours",
                trace.name.c_str(), size, trace.requests.size(), all.rate(), lru.rate(),
                best.rate());
    for (Totals& total : totals) {
      const Outcome ours =
          replay(trace, bytes, memory::make_benefit_policy(costs, total.weights), now);
      const double saved = 100 * (ours.flops_saved / std::max(1.0, lru.flops_saved) - 1);
      std::printf("  %5.1f (flops saved %+.1f%%)", ours.rate(), saved);
      VERIFY(ours.refused == lru.refused);
      total.worst = std::min(total.worst, ours.rate() - lru.rate());
      if (lru.rate() > all.rate() - 2) continue;
      total.gap += best.rate() - lru.rate();
      total.recovered += ours.rate() - lru.rate();
      total.least_saved = std::min(total.least_saved, saved);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: bench-eviction TRACES_FOLDER [SEED [SAVING_POWER SUPERSEDED]...]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const auto seed = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 1);
  std::vector<Totals> totals;
  for (int i = 3; i + 1 < argc; i += 2) {
    totals.emplace_back();
    totals.back().weights = {std::atof(argv[i]), std::atof(argv[i + 1])};
  }
  if (totals.empty()) totals.emplace_back();
  const std::string airline = folder + "/tau-bench/airline_messages.jsonl.gz";
  const std::string software = folder + "/swe-agent/swe_agent_messages.jsonl";
  compare(bench::chat_trace(software, "software agent", 20, 10, seed), {1, 2, 4}, totals);
  compare(bench::chat_trace(airline, "airline desk", 4, 10, seed), {1, 4}, totals);
  compare(bench::coding_trace(folder, 20, seed), {10, 30}, totals);
  compare(bench::coding_trace(folder, 60, seed), {30, 100}, totals);
  for (const Totals& total : totals) {
    std::printf(
        "saving^%g, superseded %g: recovers %.1f %% of the %.1f points between "
        "lru and clairvoyant; worst cell %+.2f points; flops saved at worst %+.1f %%\n",
        total.weights.saving_power, total.weights.superseded, 100 * total.recovered / total.gap,
        total.gap, total.worst, total.least_saved);
  }
  return 0;
}
