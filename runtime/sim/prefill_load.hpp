// Prompts alone, in a closed loop: so many clients, each sending its next prompt when the last one
// is answered, against a modelled prefill server. What topologies are compared by.
#pragma once

#include <cstdint>

#include "runtime/sim/step_model.hpp"

namespace runtime {

struct PrefillLoad {
  uint32_t clients = 1;
  uint64_t prompt_tokens = 8192;
  uint64_t batch_tokens = 16384;  // of one step; at least a prompt. Whole prompts are packed.
  double arrival_us = 1000;       // prompts come through one tokenizer, one after the other
};

struct PrefillRate {
  double tokens_per_s = 0;  // of the whole server
  double answer_us = 0;     // from a prompt's sending to its answer, mean
};

// Over the middle half of ten rounds of all clients (of 96 prompts at least).
PrefillRate prefill_rate(const StepModel& model, const PrefillLoad& load);

}  // namespace runtime
