// A Kimi Delta Attention layer (Kimi Linear paper): projections, then short convolution, gates,
// recurrence and gated norm in one kernel call, then the output projection.
#pragma once

#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/adapter/network_adapter.hpp"
#include "runtime/aligned_floats.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/packed_weights.hpp"
#include "runtime/state_layout.hpp"

namespace runtime {

// Scratch that all KDA layers of a model share; D = heads * d.
struct KdaScratch {
  RowBuffer in;     // [rows, q D | k D | v D | gate | decay bottleneck | beta]
  RowBuffer decay;  // [rows, D]
  RowBuffer gate;   // [rows, D]; only with the low-rank output gate
  RowBuffer out;    // [rows, D]
  KdaScratch(const ModelConfig& config, size_t max_rows);
};

class KdaLayer {
 public:
  // `name` ends with "self_attn."
  KdaLayer(const ModelConfig& config, PackedWeights& weights, const std::string& name,
           const StateLayout::Kda& place);
  // x: [rows, hidden] normed input; out: [rows, hidden]. Advances the states of the batch's slots,
  // and writes this layer's part of its captures.
  void forward(kernels::Ops& ops, kernels::Rows x, const ForwardBatch& batch,
               const CacheMemory& memory, KdaScratch& scratch, kernels::MutableRows out,
               const LayerAdapterUse& adapter) const;

 private:
  KdaConfig config_;
  float norm_eps_;
  StateLayout::Kda place_;
  kernels::MatrixPtr in_;                      // the stack whose outputs are KdaScratch::in
  kernels::MatrixPtr decay_, gate_;            // second halves of the low-rank products: [D, d]
  kernels::MatrixPtr out_;                     // [hidden, D]
  std::vector<float> conv_;                    // [3 D, conv_width]
  std::vector<float> a_log_, dt_bias_, norm_;  // [heads], [D], [d]
};

}  // namespace runtime
