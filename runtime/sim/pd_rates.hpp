// Prefill and decode on separate servers: what the pair delivers when prompts of one length get
// answers of one length, at a given decode batch.
#pragma once

#include <cstdint>

#include "runtime/sim/step_model.hpp"

namespace runtime {

struct PdCluster {
  const StepModel* decode = nullptr;
  uint32_t decode_servers = 1;
  double prefill_tokens_per_s = 0;  // of all prefill servers, saturated
  uint32_t devices = 0;             // of all servers
  double prompt_tokens = 8192, answer_tokens = 1024;
};

struct PdRates {
  double step_us = 0;
  double user_tokens_per_s = 0;    // answer tokens a user sees while it decodes
  double device_tokens_per_s = 0;  // prompt and answer tokens of one device
  bool prefill_bound = false;
};

// A decode step of `batch` sequences in the middle of their answers.
double pd_step_us(const PdCluster& cluster, uint32_t batch);
// `batch` sequences on every decode server, or as many as prefill can feed.
PdRates pd_rates(const PdCluster& cluster, uint32_t batch);
// The batch at which decode asks for just what prefill delivers, at most `batch_max`.
uint32_t pd_balance(const PdCluster& cluster, uint32_t batch_max);

}  // namespace runtime
