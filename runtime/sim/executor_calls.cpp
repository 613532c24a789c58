#include "runtime/sim/executor_calls.hpp"

namespace runtime {
namespace {

// Element-wise and reducing steps of an operation's definition, less the kernels priced for it.
constexpr double kResidualMix = 10;  // sources stacked; squares, mean, root; scaled, dotted;
                                     // softmax; weighted sum, cast; the norm's squares, root,
                                     // scaling, gain: 12, of which a mix and a norm are priced
constexpr double kKda = 26;  // three convolutions and three SiLU (one priced): 5; decay: cast,
                             // bias, exp, product, sigmoid, bound: 6; beta: cast, sigmoid: 2; q and
                             // k to unit length and q's scale: 7; state in and out: 2; output norm:
                             // 2 more than priced; its gate: 2
constexpr double kMla = 8;   // two norms of four steps (one each priced): 6; queries split: 1; the
                             // gate's sigmoid: 1
constexpr double kRoute = 7;  // cast, sigmoid, bias, gather, sum, division, scale; top-k is priced
constexpr double kNorm = 3;   // squares, root, scaling, gain; one is priced
constexpr double kGlu = 8;    // two bounded branches of four steps and their product; one is priced
constexpr double kAdd = 1;

}  // namespace

ExecutorCalls executor_calls(const ModelGeometry& geometry) {
  ExecutorCalls calls;
  calls.embed = 1;
  calls.residual_mix = 2 * geometry.layer_count() + 1;  // before each sublayer, and the readout
  calls.matmul = 1;                                     // the head
  for (uint32_t i = 0; i < geometry.layer_count(); ++i) {
    const auto& layer = geometry.layers[i];
    // A new bank row is scored once, for all later mixes.
    if (layer.ffn_sources > layer.bank_rows + 1) ++calls.residual_scores;
    if (layer.is_mla) {
      ++calls.mla;
      calls.matmul += geometry.q_lora != 0 ? 3 : 2;
      calls.rms_norm += geometry.q_lora != 0 ? 1 : 0;
    } else {
      ++calls.kda;
      calls.matmul += geometry.kda_full_gate ? 3 : 4;
    }
    const bool shared = !layer.is_moe || geometry.shared_width > 0;
    calls.glu += shared ? 1 : 0;
    if (!layer.is_moe) {
      calls.matmul += 2;
      continue;
    }
    ++calls.route;
    ++calls.experts;
    calls.matmul += 1 + (geometry.latent != 0 ? 1 : 0) + (shared ? 1 : 0);
    calls.rms_norm += geometry.latent_norm ? 1 : 0;
    calls.add += shared ? 1 : 0;
  }
  return calls;
}

double unfused_launches(const ModelGeometry& geometry) {
  const ExecutorCalls calls = executor_calls(geometry);
  const double query_norms = geometry.q_lora != 0 ? calls.mla : 0;  // counted with their attention
  return kResidualMix * calls.residual_mix + kKda * calls.kda + kMla * calls.mla +
         kRoute * calls.route + kNorm * (calls.rms_norm - query_norms) + kGlu * calls.glu +
         kAdd * calls.add;
}

}  // namespace runtime
