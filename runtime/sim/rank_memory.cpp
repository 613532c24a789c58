#include "runtime/sim/rank_memory.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/sim/pipeline_stages.hpp"

namespace runtime {
namespace {

// Weights of one layer's parts on one rank, in elements.
class LayerWeights {
 public:
  LayerWeights(const ModelGeometry& geometry, const ParallelLayout& layout)
      : g_(geometry),
        heads_part_(1.0 / layout.attention_ranks()),
        query_part_(static_cast<double>(layout.context) / layout.attention_ranks()),
        tensor_part_(1.0 / layout.tensor) {}

  double kda() const {
    const double width = g_.kda_width(), d = g_.kda_d;
    const double thin = g_.hidden * d + d * width * heads_part_;
    const double gate = g_.kda_full_gate ? g_.hidden * width * heads_part_ : thin;
    return (4 * g_.hidden + 3 * g_.conv_width) * width * heads_part_ + gate + thin +
           g_.hidden * g_.kda_heads;
  }
  // Sharded positions need every head's query, absorbed: those two products are replicated.
  double mla() const {
    const double query = g_.mla_heads * (g_.d_nope + g_.d_rope) * query_part_;
    const double values = g_.mla_heads * g_.d_v * heads_part_;
    const double queries = g_.q_lora != 0 ? g_.q_lora * (g_.hidden + query) : g_.hidden * query;
    const double absorb = g_.kv_lora * (g_.mla_heads * g_.d_nope * query_part_ + values);
    return queries + g_.hidden * g_.kv_row() + absorb + g_.hidden * values * (g_.mla_gate ? 2 : 1);
  }
  double mixture() const {  // without the routed experts
    return g_.hidden * (g_.experts + 2 * g_.latent) + 3 * g_.hidden * g_.shared_width * heads_part_;
  }
  double routed() const { return g_.experts * g_.expert_params() * tensor_part_; }
  double dense() const { return 3 * g_.hidden * g_.dense_width * heads_part_; }
  double vocabulary() const { return g_.hidden * g_.vocab * tensor_part_; }

 private:
  const ModelGeometry& g_;
  double heads_part_, query_part_, tensor_part_;
};

}  // namespace

uint64_t RankMemory::slots(double state_share) const {
  return static_cast<uint64_t>(std::floor(std::max(0.0, arena_bytes) * state_share / state_bytes));
}

uint64_t RankMemory::kv_tokens(double state_share) const {
  return static_cast<uint64_t>(
      std::floor(std::max(0.0, arena_bytes) * (1 - state_share) / kv_bytes_per_token()));
}

RankMemory rank_memory(double device_bytes, const ModelGeometry& geometry,
                       const ParallelLayout& layout, const StepOptions& options) {
  const LayerWeights weights(geometry, layout);
  const double recurrent =
      (geometry.recurrent_bytes() + geometry.conv_bytes()) / layout.attention_ranks();
  RankMemory memory;
  memory.context = layout.context;
  for (const PipelineStage& stage : cut_stages(geometry, layout.pipeline)) {
    double dense = stage.kda * weights.kda() + stage.mla * weights.mla() +
                   stage.moe * weights.mixture() + stage.dense * weights.dense();
    if (stage.has_embedding) dense += weights.vocabulary();
    if (stage.has_head) dense += weights.vocabulary();
    const double bytes = dense * geometry.weight_bytes.dense +
                         stage.moe * weights.routed() * geometry.weight_bytes.experts;
    memory.weight_bytes = std::max(memory.weight_bytes, bytes);
    memory.state_bytes = std::max(memory.state_bytes, stage.kda * recurrent);
    memory.kv_position_bytes =
        std::max(memory.kv_position_bytes, stage.mla * geometry.kv_row() * bytes_of(options.kv));
  }
  memory.arena_bytes = device_bytes * options.memory_fraction - memory.weight_bytes;
  return memory;
}

}  // namespace runtime
