#include "runtime/vocab_filter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "runtime/log_exp.hpp"

namespace runtime {
namespace {

struct Candidate {
  TokenId id = 0;
  uint32_t key = 0;   // orders as the logit does
  double weight = 1;  // e^((logit - largest) / temperature)
};

// Keeps larger keys, and of equal keys the first `ties`.
struct Cut {
  uint32_t key = 0;
  uint64_t ties = 0;
};

uint32_t ordered_key(float logit) {
  const uint32_t bits =
      std::bit_cast<uint32_t>(logit + 0.0f);  // -0 becomes +0: they are equal logits
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// The shortest run of candidates, in descending key and then ascending id, whose weights add up to
// `target`: everything if they never do; target > 0. One pass over the candidates per digit of the
// key; each digit's sums are taken in ascending id.
template <class Weight>
Cut find_cut(std::span<const Candidate> candidates, double target, Weight weight) {
  struct Digit {
    int shift, bits;
  };
  constexpr std::array<Digit, 3> kDigits{{{21, 11}, {10, 11}, {0, 10}}};
  uint32_t prefix = 0, mask = 0;  // the digits fixed so far
  double before = 0;              // weight of all keys above the prefix
  uint64_t equal = 0;             // candidates that have the prefix
  double equal_weight = 0;        // of one such candidate, once all digits are fixed
  for (const Digit digit : kDigits) {
    std::array<double, 2048> mass{};
    std::array<uint32_t, 2048> count{};
    const uint32_t digit_mask = (1u << digit.bits) - 1u;
    for (const Candidate& candidate : candidates) {
      if ((candidate.key & mask) != prefix) continue;
      const uint32_t bucket = (candidate.key >> digit.shift) & digit_mask;
      mass[bucket] += weight(candidate);
      ++count[bucket];
    }
    uint32_t lowest = 0;
    while (count[lowest] == 0) ++lowest;
    uint32_t bucket = digit_mask;
    while (bucket > lowest && before + mass[bucket] < target) before += mass[bucket--];
    prefix |= bucket << digit.shift;
    mask |= digit_mask << digit.shift;
    equal = count[bucket];
    equal_weight = mass[bucket] / static_cast<double>(equal);
  }
  uint64_t ties = 1;
  for (double sum = before + equal_weight; ties < equal && sum < target; sum += equal_weight)
    ++ties;
  return {prefix, ties};
}

void keep_above(std::vector<Candidate>& candidates, Cut cut) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (candidate.key != cut.key) return candidate.key < cut.key;
    if (cut.ties == 0) return true;
    --cut.ties;
    return false;
  });
}

}  // namespace

bool filters_vocabulary(const SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1.0f || params.min_p > 0.0f;
}

std::vector<TokenId> surviving_tokens(std::span<const float> logits, const SamplingParams& params) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  float largest = kMinusInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kMinusInfinity) continue;
    candidates.push_back({static_cast<TokenId>(i), ordered_key(logits[i]), 1.0});
    largest = std::max(largest, logits[i]);
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < candidates.size()) {
    keep_above(candidates,
               find_cut(candidates, params.top_k, [](const Candidate&) { return 1.0; }));
  }
  if (params.top_p < 1.0f || params.min_p > 0.0f) {
    for (Candidate& candidate : candidates) {
      const double difference = double{logits[static_cast<size_t>(candidate.id)]} - double{largest};
      candidate.weight = exp_double(difference / double{params.temperature});
    }
  }
  if (params.top_p < 1.0f && !candidates.empty()) {
    double total = 0;
    for (const Candidate& candidate : candidates) total += candidate.weight;
    const double target =
        std::max(double{params.top_p} * total, std::numeric_limits<double>::min());
    keep_above(candidates,
               find_cut(candidates, target, [](const Candidate& c) { return c.weight; }));
  }
  std::vector<TokenId> ids;
  ids.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    if (candidate.weight >= double{params.min_p}) ids.push_back(candidate.id);
  }
  return ids;
}

}  // namespace runtime
