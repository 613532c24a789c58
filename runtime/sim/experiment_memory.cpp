// What fits: sharded KV positions, one arena against two, inputs of a draft kept instead of states.
#include <algorithm>
#include <cmath>

#include "memory/block_pool.hpp"
#include "runtime/sim/experiment.hpp"

namespace runtime {
namespace {

enum class Question {
  kKvRatio,        // KV tokens of `layout` over those of `over`, which has given-kv-tokens
  kReplicated,     // weights of a rank of `layout` more than of one of `over`
  kState,          // a slot
  kKvOfToken,      // KV bytes of a token
  kKvTokens,       // in what the weights leave
  kRequests,       // requests of `context` tokens, one arena over a split one
  kBalance,        // the same where the split is just right
  kLeast,          // the least of it over contexts
  kDraftWindow,    // bytes of a draft's states over its inputs
  kDraftRequests,  // requests that fit with inputs over those with states
};
const std::vector<std::string_view> kQuestions = {
    "kv-ratio", "replicated", "state", "kv-of-token",  "kv-tokens",
    "requests", "balance",    "least", "draft-window", "draft-requests"};

uint64_t whole(double bytes) { return static_cast<uint64_t>(std::llround(bytes)); }

class MemoryExperiment final : public ExperimentKind {
 public:
  MemoryExperiment(const ExperimentBase& base, TomlFields& in) : base_(base) {
    in.text("layout", layout_);
    in.number("states-to-kv", states_to_kv_, 0.001, 1000);
    in.number("given-kv-tokens", given_kv_tokens_, 1, 1e12);
    in.whole("page-tokens", page_tokens_, 1, 1u << 16);
    in.whole("slots-of-a-request", slots_, 1, 1024);
    in.whole("draft-tokens", draft_tokens_, 1, 1024);
  }

  Prediction predict(TomlFields& in) override {
    std::string layout = layout_, over = layout_;
    in.text("layout", layout);
    in.text("over", over);
    uint64_t context = 1024;
    in.whole("context", context, 1, 1u << 30);
    Question what{};
    in.require("what", "what is asked");
    in.one_of("what", what, kQuestions);
    const RankMemory rank = base_.model(layout).memory();
    switch (what) {
      case Question::kKvRatio:
        return {kv_ratio(rank, base_.model(over).memory()), "ratio", ""};
      case Question::kReplicated:
        return {(rank.weight_bytes - base_.model(over).memory().weight_bytes) / 1e9, "GB a rank",
                ""};
      case Question::kState:
        return {rank.state_bytes / 1e6, "MB", ""};
      case Question::kKvOfToken:
        return {rank.kv_bytes_per_token() / 1e3, "KB", ""};
      case Question::kKvTokens:
        return {split_kv_tokens(rank, rank.arena_bytes) / 1e6, "M", ""};
      case Question::kRequests:
        return {gain(rank, context), "ratio", ""};
      case Question::kBalance:
        return {gain(rank, balance(rank)), "ratio", std::to_string(balance(rank)) + " tokens"};
      case Question::kLeast:
        return {least(rank), "ratio", ""};
      case Question::kDraftWindow:
        return {window_bytes() / input_bytes(), "ratio", ""};
      default:
        return {draft_requests(rank, parse_layout(layout).attention_ranks()), "ratio", ""};
    }
  }

 private:
  double state_share() const { return states_to_kv_ / (1 + states_to_kv_); }
  memory::ArenaConfig arena(const RankMemory& rank, double bytes) const {
    return {whole(bytes), whole(rank.state_bytes),
            whole(rank.kv_position_bytes * static_cast<double>(page_tokens_))};
  }
  // Logical tokens of KV in the KV part of a split arena.
  double split_kv_tokens(const RankMemory& rank, double bytes) const {
    const auto pool = memory::make_split_pool(arena(rank, bytes), state_share());
    return static_cast<double>(pool->counts().pages.total * page_tokens_) * rank.context;
  }
  // In the arena in which `over` has the given tokens; that of `rank` is smaller by what it
  // replicates.
  double kv_ratio(const RankMemory& rank, const RankMemory& over) const {
    const double bytes = given_kv_tokens_ * over.kv_bytes_per_token() / (1 - state_share());
    const double left = bytes - (rank.weight_bytes - over.weight_bytes);
    return split_kv_tokens(rank, left) / split_kv_tokens(over, bytes);
  }

  // Requests of `context` tokens that a pool holds at once.
  double requests_in(const memory::BlockPool& pool, uint64_t context) const {
    const uint64_t pages = (context + page_tokens_ - 1) / page_tokens_;
    uint64_t fit = 0;
    for (uint64_t step = uint64_t{1} << 32; step > 0; step /= 2) {
      if (pool.fits({(fit + step) * slots_, (fit + step) * pages})) fit += step;
    }
    return static_cast<double>(fit);
  }
  double gain(const RankMemory& rank, uint64_t context) const {
    const auto config = arena(rank, rank.arena_bytes);
    return requests_in(*memory::make_unified_pool(config), context) /
           requests_in(*memory::make_split_pool(config, state_share()), context);
  }
  uint64_t balance(const RankMemory& rank) const {
    const double tokens = static_cast<double>(slots_) * rank.state_bytes /
                          (states_to_kv_ * rank.kv_bytes_per_token());
    return whole(tokens / static_cast<double>(page_tokens_)) * page_tokens_;
  }
  double least(const RankMemory& rank) const {
    double least = std::min(gain(rank, page_tokens_), gain(rank, balance(rank)));
    for (uint64_t context = 256; context <= 262144; context *= 2)
      least = std::min(least, gain(rank, context));
    return least;
  }

  // Of one layer and head, and one token more than is drafted.
  double window_bytes() const {
    const double d = base_.geometry.kda_d;
    return (static_cast<double>(draft_tokens_) + 1) * d * d * 4;
  }
  double input_bytes() const {  // v, k and the gate of a step in fp32, and beta
    return (static_cast<double>(draft_tokens_) + 1) * (3 * base_.geometry.kda_d + 1) * 4;
  }
  double draft_requests(const RankMemory& rank, double ranks) const {
    const double parts = base_.geometry.kda_layers() * base_.geometry.kda_heads / ranks;
    const double held = static_cast<double>(slots_) * rank.state_bytes;
    return (held + parts * window_bytes()) / (held + parts * input_bytes());
  }

  const ExperimentBase& base_;
  std::string layout_ = "TP8";
  double states_to_kv_ = 0.9;  // bytes of states over bytes of KV in a split arena
  double given_kv_tokens_ = 1.5e6;
  uint64_t page_tokens_ = 64, slots_ = 4, draft_tokens_ = 7;
};

}  // namespace

std::unique_ptr<ExperimentKind> memory_experiment(const ExperimentBase& base, TomlFields& in) {
  return std::make_unique<MemoryExperiment>(base, in);
}

}  // namespace runtime
