// When batches leave a pipeline of stages that work on different batches at the same time. With one
// stage it is a plain queue. Invariant: batches finish in the order in which they enter.
#pragma once

#include <vector>

#include "runtime/sim/step_model.hpp"

namespace runtime {

class PipelineClock {
 public:
  explicit PipelineClock(const StepModel& model);
  // A batch that is ready at `ready_us` enters once the first stage is free. `queued`: more work
  // stands behind it, so that hand-offs hide behind compute. Returns when its results are out.
  double enter(const StepShape& shape, double ready_us, bool queued);
  double first_stage_free_us() const { return free_us_.front(); }  // the next may enter then

 private:
  const StepModel* model_;
  std::vector<double> free_us_;  // [stages]
};

}  // namespace runtime
