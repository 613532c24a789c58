// Speculation under load, modelled: every request drafts a block, the planner keeps the drafts that
// pay, the target verifies them in one step. Acceptance is drawn from a profile; time comes from a
// StepModel.
#pragma once

#include <cstdint>

#include "runtime/sim/step_model.hpp"

namespace runtime {

constexpr uint32_t kDraftTokens = 7;

struct AcceptanceProfile {
  double mean = 0;    // chance that a draft is accepted when those before it were
  double spread = 0;  // drawn from Beta(spread * mean, spread * (1 - mean)): small is bimodal
};
// The mean at which a request whose `drafts` are all verified gets `length` tokens a step (above 1,
// below drafts + 1).
double acceptance_mean(double length, uint32_t drafts = kDraftTokens);

struct TrimPanel {
  uint32_t requests = 1;
  uint64_t context = 1024;  // positions of each
  AcceptanceProfile acceptance;
  uint32_t steps = 200;
  uint64_t seed = 1;
  // The planner fixes how many drafts it keeps from confidences one step old, as a server does that
  // plans ahead; else it waits for this step's.
  bool stale_budget = true;
};

struct TrimGain {
  double gain = 0;         // tokens per second, trimmed over all verified, less 1
  double full_length = 0;  // tokens of a request and step, all verified
  double trimmed_length = 0;
};

TrimGain trim_gain(const StepModel& model, const TrimPanel& panel);

}  // namespace runtime
