// What a step costs on a modelled device: one model's geometry, one device's numbers, one layout.
// The same shape always costs the same. Not for several threads at once: it remembers routing, and
// of decode steps what does not depend on how much they read.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/sim/device_file.hpp"
#include "runtime/sim/expert_routing.hpp"
#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/pipeline_stages.hpp"
#include "runtime/sim/rank_memory.hpp"
#include "runtime/sim/step_breakdown.hpp"
#include "runtime/sim/step_options.hpp"
#include "runtime/sim/step_shape.hpp"

namespace runtime {

class StepPricer;

class StepModel {
 public:
  // Throws std::invalid_argument when the layout does not fit the geometry or the device (the
  // weights, several ranks of a roofline device).
  StepModel(const DeviceFile& device, const ModelGeometry& geometry, const ParallelLayout& layout,
            const StepOptions& options);

  // From the first kernel to the sampled tokens. With pipeline stages: one batch alone passing
  // through all of them; a queue of batches is priced by PipelineClock. 0 for an empty shape.
  double step_us(const StepShape& shape) const;
  StepBreakdown breakdown(const StepShape& shape) const;

  // One stage's time for one batch, hand-offs not counted; and the hand-off from `stage` to the
  // next, nothing of it hidden.
  StepBreakdown stage(size_t stage, const StepShape& shape) const;
  double stage_us(size_t stage, const StepShape& shape) const;
  double handoff_us(size_t stage, const StepShape& shape) const;
  size_t stage_count() const { return stages_.size(); }

  // What drafting adds (with StepOptions::drafts, step_us has it): seven tokens for every decode
  // row, and the accepted ones folded into the states.
  double draft_us(const StepShape& shape) const;
  // `tokens` (logical) of KV from host memory, each rank its own part.
  double host_load_us(double tokens) const;

  const RankMemory& memory() const { return memory_; }
  const kernels::DeviceParams& device() const { return device_; }
  const ModelGeometry& geometry() const { return geometry_; }
  const ParallelLayout& layout() const { return layout_; }
  const StepOptions& options() const { return options_; }

 private:
  // Of a stage's step, in the order in which they are added up: `before` and then latent attention,
  // which is not among them, the mixtures of experts and so on.
  struct Parts {
    StepBreakdown before, mixture, dense, head;
  };
  Parts price(const PipelineStage& stage, const StepPricer& pricer) const;
  const Parts& decode_parts(size_t stage, uint32_t rows, const StepPricer& pricer) const;
  StepBreakdown whole_stage(size_t stage, const StepShape& shape) const;
  StepBreakdown roofline(const StepShape& shape) const;

  kernels::DeviceParams device_;
  bool is_roofline_;
  ModelGeometry geometry_;
  ParallelLayout layout_;
  StepOptions options_;
  ExpertRouting routing_;
  std::vector<PipelineStage> stages_;
  RankMemory memory_;
  mutable std::vector<std::vector<std::optional<Parts>>> decode_parts_;  // [stage][rows]
};

}  // namespace runtime
