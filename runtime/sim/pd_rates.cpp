#include "runtime/sim/pd_rates.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

double answer_rate_of_prefill(const PdCluster& cluster) {
  return cluster.prefill_tokens_per_s * cluster.answer_tokens / cluster.prompt_tokens;
}

double answer_rate_of_decode(const PdCluster& cluster, uint32_t batch) {
  return cluster.decode_servers * static_cast<double>(batch) / pd_step_us(cluster, batch) * 1e6;
}

}  // namespace

double pd_step_us(const PdCluster& cluster, uint32_t batch) {
  VERIFY(cluster.decode != nullptr && batch > 0);
  StepShape shape;
  const auto position = static_cast<uint64_t>(cluster.prompt_tokens + cluster.answer_tokens / 2);
  for (uint32_t i = 0; i < batch; ++i) shape.add_decode(position);
  return cluster.decode->step_us(shape);
}

PdRates pd_rates(const PdCluster& cluster, uint32_t batch) {
  VERIFY(cluster.devices > 0);
  const double decode = answer_rate_of_decode(cluster, batch);
  const double prefill = answer_rate_of_prefill(cluster);
  PdRates rates;
  rates.step_us = pd_step_us(cluster, batch);
  rates.user_tokens_per_s = 1e6 / rates.step_us;
  rates.prefill_bound = prefill < decode;
  rates.device_tokens_per_s = std::min(prefill, decode) *
                              (1 + cluster.prompt_tokens / cluster.answer_tokens) / cluster.devices;
  return rates;
}

uint32_t pd_balance(const PdCluster& cluster, uint32_t batch_max) {
  const double prefill = answer_rate_of_prefill(cluster);
  uint32_t batch = 1;
  while (batch < batch_max && answer_rate_of_decode(cluster, batch) < prefill) ++batch;
  return batch;
}

}  // namespace runtime
