// The clock of a device that a StepModel prices: forwards one after another, or through a pipeline
// of stages; copies before the forward of their plan; host memory over a link that is first come,
// first served.
#pragma once

#include "runtime/sim/modelled_worker.hpp"
#include "runtime/sim/pipeline_clock.hpp"
#include "runtime/sim/step_model.hpp"

namespace runtime {

class StepModelClock final : public DeviceClock {
 public:
  // `model` must outlive it. `page_tokens`: positions of a page on a rank.
  StepModelClock(const StepModel& model, uint32_t page_tokens);

  DeviceTimes start(const DeviceWork& work, uint64_t now_ns) override;

 private:
  double copies_us(const PlanCopies& copies) const;          // on the device
  double link_us(double states, double pages) const;         // one way to host memory or back

  const StepModel& model_;
  PipelineClock pipeline_;
  double page_bytes_;
  double in_free_us_ = 0;   // of the link from host memory
  double out_free_us_ = 0;  // of the link to it
  double done_us_ = 0;      // of the last plan
};

}  // namespace runtime
