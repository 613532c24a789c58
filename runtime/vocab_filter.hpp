// top_k, top_p and min_p: which tokens may still be drawn. Selection by radix on the logits' bits,
// so the vocabulary is never sorted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/request.hpp"

namespace runtime {

bool filters_vocabulary(const SamplingParams& params);

// Ids that survive, ascending; never empty if a logit is finite. In this order, each on the
// survivors of the one before:
//   top_k  the k largest logits
//   top_p  in descending order, tokens before which less than top_p of the survivors' mass lies (at
//   least one) min_p  tokens with at least min_p times the largest probability
// Probabilities are softmax(logits / temperature). Ties go to the lower id. Logits of minus
// infinity never survive.
std::vector<TokenId> surviving_tokens(std::span<const float> logits, const SamplingParams& params);

}  // namespace runtime
