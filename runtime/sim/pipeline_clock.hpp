// When batches leave a pipeline of stages that work on different batches at the same time. With one
// stage it is a plain queue. Invariant: batches finish in the order in which they enter, and at
// most as many are under way as there are stages (a server plans one for each).
#pragma once

#include <deque>
#include <vector>

#include "runtime/sim/step_model.hpp"

namespace runtime {

class PipelineClock {
 public:
  explicit PipelineClock(const StepModel& model)
      : model_(&model), free_us_(model.stage_count(), 0.0) {}

  // The next batch may enter then: the first stage is free, and one of the batches under way out.
  double next_entry_us() const;
  // A batch that is ready at `ready_us`; `queued`: more work stands behind it, and hand-offs hide
  // behind that. Returns when its results are out.
  double enter(const StepShape& shape, double ready_us, bool queued);

 private:
  const StepModel* model_;
  std::vector<double> free_us_;     // [stages] when each is done with what it was given
  std::deque<double> finished_us_;  // of the last batches, at most one for each stage
};

}  // namespace runtime
