// The list of operations of one step on one rank, priced: what StepModel adds up. A layer's
// sublayers cost the same wherever they stand but for the attention residuals before them, so each
// is priced once and counted.
#pragma once

#include <cstdint>

#include "kernels/sim/attention_cost.hpp"
#include "kernels/sim/product_cost.hpp"
#include "runtime/sim/expert_routing.hpp"
#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/step_breakdown.hpp"
#include "runtime/sim/step_options.hpp"
#include "runtime/sim/step_shape.hpp"

namespace runtime {

class StepPricer {
 public:
  // Everything passed is referred to, and must outlive this.
  StepPricer(const kernels::DeviceParams& device, const ModelGeometry& geometry,
             const ParallelLayout& layout, const StepOptions& options, const ExpertRouting& routing,
             const StepShape& shape);

  StepBreakdown embedding() const;
  // The mix of attention residuals and the norm before a sublayer; `sources` as in the geometry.
  StepBreakdown sublayer_input(uint32_t sources) const;
  StepBreakdown kda() const;
  StepBreakdown mla() const;
  StepBreakdown mixture() const;
  StepBreakdown dense() const;
  StepBreakdown head() const;  // last mix and norm, logits, sampling

 private:
  // A step is a list of kernels; these add one to `to`.
  void add(StepBreakdown& to, CostClass cost, double us) const;
  void product(StepBreakdown& to, double m, double n, double k) const;
  void stream(StepBreakdown& to, double bytes) const;
  void all_reduce(StepBreakdown& to, uint32_t ranks, double bytes) const;
  // A kernel on a second stream beside one of `main_us`, if there is one: only what exceeds that
  // counts.
  void beside(StepBreakdown& to, CostClass cost, double main_us, double us) const;

  double product_us(double m, double n, double k) const;
  kernels::MlaWork mla_work(double heads) const;
  void attention_output(StepBreakdown& to, double width) const;
  void residual_add(StepBreakdown& to) const;
  void kda_recurrence(StepBreakdown& to) const;
  void mla_prefill(StepBreakdown& to) const;
  void mla_decode(StepBreakdown& to) const;
  void exchange_experts(StepBreakdown& to) const;
  void routed_experts(StepBreakdown& to) const;
  void mixture_output(StepBreakdown& to) const;

  const kernels::DeviceParams& device_;
  const ModelGeometry& geometry_;
  const ParallelLayout& layout_;
  const StepOptions& options_;
  const ExpertRouting& routing_;
  bool prefills_;
  Fusions fused_;  // what of it this step has

  // Of all copies of the attention together, and of the fullest one.
  double all_tokens_, expert_tokens_, logit_rows_;
  double tokens_, prefill_tokens_, prefill_longest_, prefill_context_, prefill_pairs_;
  double decode_rows_, decode_tokens_, decode_context_;
  double kda_width_, heads_, query_heads_;  // of one rank
  double split_;                            // ranks that share norms, mixes and the up-projection
};

}  // namespace runtime
