// StepModel on a device with two rates: the bytes and operations of a step.
#include <algorithm>

#include "kernels/sim/roofline_cost.hpp"
#include "runtime/sim/step_model.hpp"

namespace runtime {
namespace {

// Weights, in elements, of what every token runs through; routed experts apart.
double shared_params(const ModelGeometry& g) {
  const double width = g.kda_width(), values = g.mla_heads * g.d_v;
  const double query = g.mla_heads * (g.d_nope + g.d_rope);
  const double thin = g.kda_d * (g.hidden + width);
  const double kda = 4 * g.hidden * width + thin + (g.kda_full_gate ? g.hidden * width : thin) +
                     g.hidden * g.kda_heads;
  const double queries = g.q_lora != 0 ? g.q_lora * (g.hidden + query) : g.hidden * query;
  const double mla = queries + g.hidden * g.kv_row() +
                     g.kv_lora * (g.mla_heads * g.d_nope + values) +
                     g.hidden * values * (g.mla_gate ? 2 : 1);
  double sum = g.kda_layers() * kda + g.mla_layers() * mla;
  for (const auto& layer : g.layers) {
    sum += layer.is_moe ? g.hidden * (g.experts + 2 * g.latent) + 3 * g.hidden * g.shared_width
                        : 3 * g.hidden * g.dense_width;
  }
  return sum;
}

}  // namespace

StepBreakdown StepModel::roofline(const StepShape& shape) const {
  const ModelGeometry& g = geometry_;
  const auto mixtures = static_cast<double>(std::count_if(
      g.layers.begin(), g.layers.end(), [](const auto& layer) { return layer.is_moe; }));
  const auto tokens = static_cast<double>(shape.tokens());
  const double logits = static_cast<double>(shape.decode_tokens) + shape.prefill_rows;
  const double sequences = static_cast<double>(shape.decode_rows) + shape.prefill_rows;
  const double shared = shared_params(g), head = g.hidden * g.vocab;
  const double states = g.kda_layers() * (g.recurrent_bytes() + g.conv_bytes());
  const double cached = static_cast<double>(shape.decode_context + shape.prefill_context);

  kernels::RooflineWork work;
  work.layers = g.layer_count();
  work.tokens = tokens;
  work.bytes = (shared + (logits > 0 ? head : 0)) * g.weight_bytes.dense +
               mixtures * routing_.distinct(tokens) * g.expert_bytes() + 2 * sequences * states +
               cached * g.mla_layers() * g.kv_row() * bytes_of(options_.kv);
  // A state element and token: one multiplication and three multiply-adds. Absorbed attention: a
  // product with the cached row and one with its value part, for every head.
  const double recurrence = 7 * g.kda_layers() * g.kda_width() * g.kda_d;
  const double pairs = shape.prefill_pairs + static_cast<double>(shape.decode_context);
  const double attention = 2 * g.mla_layers() * g.mla_heads * (g.kv_row() + g.kv_lora);
  work.flops = tokens * (2 * (shared + mixtures * g.top_k * g.expert_params()) + recurrence) +
               2 * logits * head + pairs * attention;

  StepBreakdown sum;
  sum[CostClass::kFixed] = {kernels::roofline_us(device_.roofline, work), 1};
  return sum;
}

}  // namespace runtime
