#include "runtime/sampler.hpp"

#include <algorithm>
#include <limits>

#include "runtime/log_exp.hpp"
#include "runtime/noise.hpp"
#include "runtime/vocab_filter.hpp"

namespace runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool any_nan_or_infinite(std::span<const float> logits) {
  bool bad = false;
  for (const float logit : logits) bad |= !(logit < kInfinity);
  return bad;
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
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equals
  if (best == logits.end() || *best == -kInfinity) return std::nullopt;
  return static_cast<TokenId>(best - logits.begin());
}

// argmax of score + noise over tokens offered in ascending id.
class NoisyArgmax {
 public:
  explicit NoisyArgmax(const NoiseKey& key) : key_(key) {}

  void offer(TokenId id, double score) {
    const uint32_t group = static_cast<uint32_t>(id) / 4;
    if (!has_block_ || group != group_) {
      block_ = noise_block(key_, group);
      group_ = group;
      has_block_ = true;
    }
    const uint32_t word = block_[static_cast<size_t>(id) % 4];
    if (score + gumbel_bound(word) <= best_score_)
      return;  // saves two logarithms for nearly every token
    const double noisy = score + gumbel(word);
    if (noisy > best_score_) {
      best_score_ = noisy;
      best_ = id;
    }
  }
  std::optional<TokenId> best() const { return best_; }

 private:
  NoiseKey key_;
  PhiloxBlock block_{};
  uint32_t group_ = 0;
  bool has_block_ = false;
  double best_score_ = -std::numeric_limits<double>::infinity();
  std::optional<TokenId> best_;
};

}  // namespace

std::optional<TokenId> sample(const SampleInput& input) {
  const SamplingParams& params = *input.params;
  if (any_nan_or_infinite(input.logits)) return std::nullopt;
  apply_penalties(input.logits, params, *input.counts);
  apply_bias_and_mask(input.logits, params, input.output_tokens);
  if (params.temperature <= 0.0f) return greedy(input.logits);
  NoisyArgmax argmax({params.seed, params.choice, input.position, NoisePurpose::kToken});
  const double temperature = double{params.temperature};
  if (filters_vocabulary(params)) {
    for (const TokenId id : surviving_tokens(input.logits, params)) {
      argmax.offer(id, double{input.logits[static_cast<size_t>(id)]} / temperature);
    }
  } else {
    for (size_t i = 0; i < input.logits.size(); ++i) {
      argmax.offer(static_cast<TokenId>(i), double{input.logits[i]} / temperature);
    }
  }
  return argmax.best();
}

PositionLogprobs position_logprobs(std::span<const float> logits, TokenId chosen, int32_t top) {
  const float largest = *std::max_element(logits.begin(), logits.end());
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
