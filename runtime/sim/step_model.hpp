// What a step costs on a modelled device: one model's geometry, one device's numbers, one layout.
// Pure: the same shape always costs the same. Not for several threads at once (it remembers).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/sim/device_params.hpp"
#include "runtime/sim/model_geometry.hpp"
#include "runtime/sim/parallel_layout.hpp"
#include "runtime/sim/rank_memory.hpp"
#include "runtime/sim/step_breakdown.hpp"
#include "runtime/sim/step_shape.hpp"

namespace runtime {

enum class Stack : uint8_t {
  kBringUp,  // one launch for every operation, nothing hides a kernel's launch and drain
  kTuned,    // fused kernels in a captured graph
};

struct StepOptions {
  Stack stack = Stack::kTuned;
  KvType kv = KvType::kBf16;
  bool sequence_parallel = false;  // mixes, norms and up-projection split by tokens (experts > 1)
  double memory_fraction = 0.9;    // of a device's memory for weights, states and KV
};

class StepModel {
 public:
  // Throws std::invalid_argument when the layout does not fit the geometry (heads, experts,
  // layers) or the weights do not fit the device.
  StepModel(const kernels::DeviceParams& device, const ModelGeometry& geometry,
            const ParallelLayout& layout, const StepOptions& options);
  ~StepModel();
  StepModel(StepModel&&) noexcept;
  StepModel& operator=(StepModel&&) noexcept;

  // From the first kernel to the sampled tokens. With pipeline stages: one batch alone passing
  // through all of them; a queue of batches is priced by PipelineClock. 0 for an empty shape.
  double step_us(const StepShape& shape) const;
  StepBreakdown breakdown(const StepShape& shape) const;

  // One stage's time for one batch, first stage first; without hand-offs.
  std::vector<double> stage_us(const StepShape& shape) const;
  double handoff_us(const StepShape& shape) const;  // between two stages, nothing hidden
  // Seven tokens proposed for every decode row, and the accepted ones folded into the states: what
  // a speculating server adds to step_us.
  double draft_us(const StepShape& shape) const;
  // `tokens` of KV (logical) from host memory to this layout's devices.
  double host_load_us(double tokens) const;

  RankMemory memory() const;
  const kernels::DeviceParams& device() const;
  const ModelGeometry& geometry() const;
  const ParallelLayout& layout() const;
  const StepOptions& options() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace runtime
