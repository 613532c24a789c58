// Chooses the next token: argmax(filtered logits / T + Gumbel noise keyed (seed, choice, absolute
// position)). The same key and the same logits give the same token, whatever the batch and whether
// it was retracted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/request.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// Counts the penalties need; rebuilt from a sequence's tokens after a retraction.
struct PenaltyCounts {
  std::unordered_map<TokenId, uint32_t> output;  // tokens generated
  std::unordered_map<TokenId, uint32_t> prompt;
  void add_prompt(TokenId id) { ++prompt[id]; }
  void add_output(TokenId id) { ++output[id]; }
};

struct SampleInput {
  std::span<float> logits;  // [vocab]; scratch afterwards
  const SamplingParams* params = nullptr;
  const PenaltyCounts* counts = nullptr;
  uint32_t position = 0;       // absolute position the sampled token takes
  uint32_t output_tokens = 0;  // generated so far (min_tokens)
};

// Empty when a logit is NaN or +infinity: the row fails alone.
std::optional<TokenId> sample(const SampleInput& input);

// From unmodified logits: log-softmax of `chosen` and of the `top` largest (ties to the lower id).
PositionLogprobs position_logprobs(std::span<const float> logits, TokenId chosen, int32_t top);

}  // namespace runtime
