// StepModel on a device with two rates: the bytes and operations of a step.
#include <algorithm>

#include "kernels/sim/roofline_cost.hpp"
#include "runtime/sim/step_model.hpp"

namespace runtime {

StepBreakdown StepModel::roofline(const StepShape& shape) const {
  const ModelGeometry& g = geometry_;
  const auto mixtures = static_cast<double>(std::count_if(
      g.layers.begin(), g.layers.end(), [](const auto& layer) { return layer.is_moe; }));
  const auto tokens = static_cast<double>(shape.tokens());
  const double logits = static_cast<double>(shape.decode_tokens) + shape.prefill_rows;
  const double sequences = static_cast<double>(shape.decode_rows) + shape.prefill_rows;
  const double head = g.hidden * g.vocab;
  const double states = g.kda_layers() * (g.recurrent_bytes() + g.conv_bytes());
  const auto cached = static_cast<double>(shape.decode_context + shape.prefill_context);

  kernels::RooflineWork work;
  work.layers = g.layer_count();
  work.tokens = tokens;
  // Weights once, each sequence's state read and written, its cached rows read.
  work.bytes = (g.shared_params + head) * g.weight_bytes.dense +
               mixtures * routing_.distinct(tokens) * g.expert_bytes() + 2 * sequences * states +
               cached * g.mla_layers() * g.kv_row() * bytes_of(options_.kv);
  const double active = g.shared_params + mixtures * g.top_k * g.expert_params();
  const double pairs = shape.prefill_pairs + static_cast<double>(shape.decode_context);
  work.flops =
      tokens * (2 * active + g.recurrence_flops) + 2 * logits * head + pairs * g.absorbed_flops;

  StepBreakdown sum;
  sum[CostClass::kFixed] = {kernels::roofline_us(device_.roofline, work), 1};
  return sum;
}

}  // namespace runtime
