// When batches leave a pipeline of stages that work on different batches at the same time. With one
// stage it is a plain queue. Invariant: batches finish in the order in which they enter.
#pragma once

#include <vector>

#include "runtime/sim/step_model.hpp"

namespace runtime {

class PipelineClock {
 public:
  explicit PipelineClock(const StepModel& model)
      : model_(&model), free_us_(model.stage_count(), 0.0) {}

  // A batch that is ready at `ready_us` enters once the first stage is free. `queued`: more work
  // stands behind it, and hand-offs hide behind that. Returns when its results are out.
  double enter(const StepShape& shape, double ready_us, bool queued);
  double first_stage_free_us() const { return free_us_.front(); }  // the next batch may enter then

 private:
  const StepModel* model_;
  std::vector<double> free_us_;  // [stages] when each is done with what it was given
};

}  // namespace runtime
