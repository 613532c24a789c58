// What a forward needs at least, from the shapes alone: weight, state and cache bytes, and the
// operations of its products. A speed limit is these over what the machine reads and multiplies.
#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "runtime/model_config.hpp"

namespace runtime {

class WeightsFile;

struct WeightTypes {
  kernels::DType dense = kernels::DType::kBF16;    // everything but routed experts
  kernels::DType experts = kernels::DType::kBF16;  // w1, w2, w3 of routed experts
};
WeightTypes weight_types(const ModelConfig& config, const WeightsFile& file);

struct ModelCosts {
  ModelCosts(const ModelConfig& config, WeightTypes types, kernels::DType kv_dtype);

  // Weight elements of the products that every token runs through: all but embedding, routed
  // experts and head.
  uint64_t shared_params = 0;
  uint64_t head_params = 0;    // [vocab, hidden]
  uint64_t expert_params = 0;  // one routed expert of one layer
  uint32_t mixture_layers = 0, experts = 0, top_k = 0;

  uint64_t shared_bytes = 0, head_bytes = 0, expert_bytes = 0;  // of the same
  uint64_t embedding_row_bytes = 0;
  uint64_t state_bytes = 0;   // of a sequence: KDA states and conv windows
  uint64_t kv_row_bytes = 0;  // of a position, all MLA layers

  // A KDA state element and token: one multiplication (decay) and three multiply-adds.
  uint64_t recurrence_flops = 0;  // of a token, all KDA layers
  uint64_t absorbed_flops = 0;    // of a token and a position before it, all MLA layers
  uint64_t expanded_flops = 0;    // the same with keys and values of each head at hand

  uint64_t active_params() const {  // of a token, without the head
    return shared_params + uint64_t{mixture_layers} * top_k * expert_params;
  }
};

struct StepCosts {
  double bytes = 0, flops = 0;
  // The least time on a machine with these rates, in seconds.
  double seconds(double bytes_per_s, double flops_per_s) const;
};

struct DecodeStep {
  double sequences = 1;
  double positions = 0;  // of context, each
  double experts = 0;    // distinct ones that the batch uses, summed over the layers
};
// Each weight is read once, each sequence's state is read and written, its context read.
StepCosts decode_costs(const ModelCosts& costs, const DecodeStep& step);
// The attention to `positions` positions of context alone, in the absorbed form.
StepCosts context_costs(const ModelCosts& costs, double positions);
// A prompt of so many tokens from position 0: the head once, attention in the expanded form, and
// only operations, since its weights are read once for many tokens.
StepCosts prefill_costs(const ModelCosts& costs, double tokens);

}  // namespace runtime
