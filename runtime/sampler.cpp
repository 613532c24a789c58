#include "runtime/sampler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "runtime/log_exp.hpp"
#include "runtime/noise.hpp"
#include "runtime/vocab_filter.hpp"

namespace runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// On bits, which compilers turn into lanes. Minus infinity passes: it is a masked token.
bool any_nan_or_plus_infinity(std::span<const float> logits) {
  constexpr uint32_t kPlusInfinity = 0x7f800000u;
  uint32_t bad = 0;
  for (const float logit : logits) {
    const uint32_t bits = std::bit_cast<uint32_t>(logit);
    bad |= static_cast<uint32_t>((bits & 0x7fffffffu) > kPlusInfinity) |
           static_cast<uint32_t>(bits == kPlusInfinity);
  }
  return bad != 0;
}

// No NaN among them, so the order of comparisons does not matter: sixteen at a time.
float largest_of(std::span<const float> logits) {
  std::array<float, 16> lanes;
  lanes.fill(-kInfinity);
  const size_t whole = logits.size() / lanes.size() * lanes.size();
  for (size_t i = 0; i < whole; i += lanes.size()) {
    for (size_t j = 0; j < lanes.size(); ++j)
      lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  }
  float largest = *std::max_element(lanes.begin(), lanes.end());
  for (size_t i = whole; i < logits.size(); ++i) largest = std::max(largest, logits[i]);
  return largest;
}

// A penalty or bias may be any number a client sends; the logit stays finite, so softmax stays
// defined.
void set_logit(std::span<float> logits, TokenId id, float value) {
  constexpr float kMax = std::numeric_limits<float>::max();
  logits[static_cast<size_t>(id)] = std::clamp(value, -kMax, kMax);
}

void penalise_repetition(std::span<float> logits, const std::unordered_map<TokenId, uint32_t>& seen,
                         float penalty, const std::unordered_map<TokenId, uint32_t>* done) {
  for (const auto& [id, count] : seen) {
    if (static_cast<size_t>(id) >= logits.size() || (done != nullptr && done->contains(id)))
      continue;
    const float logit = logits[static_cast<size_t>(id)];
    set_logit(logits, id, logit > 0 ? logit / penalty : logit * penalty);
  }
}

// Each token is changed on its own, so the order of the maps does not matter.
void apply_penalties(std::span<float> logits, const SamplingParams& params,
                     const PenaltyCounts& counts) {
  if (params.repetition_penalty != 1.0f) {
    penalise_repetition(logits, counts.output, params.repetition_penalty, nullptr);
    penalise_repetition(logits, counts.prompt, params.repetition_penalty, &counts.output);
  }
  if (params.frequency_penalty == 0.0f && params.presence_penalty == 0.0f) return;
  for (const auto& [id, count] : counts.output) {
    if (static_cast<size_t>(id) >= logits.size()) continue;
    const float penalty =
        params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
    set_logit(logits, id, logits[static_cast<size_t>(id)] - penalty);
  }
}

void apply_bias_and_mask(std::span<float> logits, const SamplingParams& params,
                         uint32_t output_tokens) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (static_cast<size_t>(id) < logits.size())
      set_logit(logits, id, logits[static_cast<size_t>(id)] + bias);
  }
  if (output_tokens >= params.min_tokens) return;
  for (const TokenId id : params.stop_ids) {
    if (static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] = -kInfinity;
  }
}

std::optional<TokenId> greedy(std::span<const float> logits) {
  const float largest = largest_of(logits);
  if (largest == -kInfinity) return std::nullopt;
  return static_cast<TokenId>(std::find(logits.begin(), logits.end(), largest) - logits.begin());
}

// argmax of logit / temperature + noise, ties to the lower id, over tokens offered in any order.
// Draws no noise for a token that cannot win, so offering the largest logit first makes most of the
// vocabulary cost a comparison.
class NoisyArgmax {
 public:
  NoisyArgmax(const NoiseKey& key, double temperature) : key_(key), temperature_(temperature) {}

  void offer(TokenId id, float logit) {
    if (double{logit} < hopeless_below_) return;
    const uint32_t word = noise_word(static_cast<uint32_t>(id));
    const double score = double{logit} / temperature_;
    if (score + gumbel_bound(word) < best_score_) return;  // saves two logarithms
    const double noisy = score + gumbel(word);
    if (noisy < best_score_ || (noisy == best_score_ && id > best_)) return;
    best_score_ = noisy;
    best_ = id;
    // Noise is below 22.88. The rest of 23 covers the rounding of these operations while scores
    // stay below 10^14.
    if (best_score_ > -1e14 && best_score_ < 1e14)
      hopeless_below_ = (best_score_ - 23.0) * temperature_;
  }
  TokenId best() const { return best_; }

 private:
  uint32_t noise_word(uint32_t id) {
    if (!has_block_ || id / 4 != group_) {
      group_ = id / 4;
      block_ = noise_block(key_, group_);
      has_block_ = true;
    }
    return block_[id % 4];
  }

  NoiseKey key_;
  double temperature_;
  PhiloxBlock block_{};
  uint32_t group_ = 0;
  bool has_block_ = false;
  double hopeless_below_ = -std::numeric_limits<double>::infinity();  // logits
  double best_score_ = -std::numeric_limits<double>::infinity();
  TokenId best_ = std::numeric_limits<TokenId>::max();
};

}  // namespace

std::optional<TokenId> sample(const SampleInput& input) {
  const SamplingParams& params = *input.params;
  if (any_nan_or_plus_infinity(input.logits)) return std::nullopt;
  apply_penalties(input.logits, params, *input.counts);
  apply_bias_and_mask(input.logits, params, input.output_tokens);
  const std::optional<TokenId> largest = greedy(input.logits);
  if (params.temperature <= 0.0f || !largest) return largest;
  const auto logit = [&](TokenId id) { return input.logits[static_cast<size_t>(id)]; };
  const NoiseKey key{params.seed, params.choice, input.position, NoisePurpose::kToken};
  NoisyArgmax argmax(key, double{params.temperature});
  argmax.offer(*largest, logit(*largest));  // it survives every filter, as the lowest of equals
  if (filters_vocabulary(params)) {
    for (const TokenId id : surviving_tokens(input.logits, params)) argmax.offer(id, logit(id));
  } else {
    const auto count = static_cast<TokenId>(input.logits.size());
    for (TokenId id = 0; id < count; ++id) argmax.offer(id, logit(id));
  }
  return argmax.best();
}

PositionLogprobs position_logprobs(std::span<const float> logits, TokenId chosen, int32_t top) {
  const float largest = largest_of(logits);
  double sum = 0;  // in ascending id
  for (const float logit : logits) sum += exp_double(double{logit} - double{largest});
  const double log_sum = double{largest} + log_double(sum);
  const auto entry = [&](TokenId id) {
    return TokenLogprob{id, static_cast<float>(double{logits[static_cast<size_t>(id)]} - log_sum)};
  };
  // The ids of the largest logits so far, best first; a later equal never displaces an earlier one.
  std::vector<TokenId> best;
  const size_t wanted = std::min(static_cast<size_t>(std::max(top, 0)), logits.size());
  best.reserve(wanted + 1);
  for (size_t i = 0; i < logits.size() && wanted > 0; ++i) {
    if (best.size() == wanted && logits[i] <= logits[static_cast<size_t>(best.back())]) continue;
    const auto place = std::find_if(best.begin(), best.end(), [&](TokenId id) {
      return logits[i] > logits[static_cast<size_t>(id)];
    });
    best.insert(place, static_cast<TokenId>(i));
    if (best.size() > wanted) best.pop_back();
  }
  PositionLogprobs result{entry(chosen), {}};
  for (const TokenId id : best) result.top.push_back(entry(id));
  return result;
}

}  // namespace runtime
