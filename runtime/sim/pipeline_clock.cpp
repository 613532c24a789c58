#include "runtime/sim/pipeline_clock.hpp"

#include <algorithm>

namespace runtime {

double PipelineClock::enter(const StepShape& shape, double ready_us, bool queued) {
  const double exposed = queued ? 1 - model_->device().handoff_hidden : 1;
  double at = ready_us;
  for (size_t stage = 0; stage < free_us_.size(); ++stage) {
    at = std::max(at, free_us_[stage]) + model_->stage_us(stage, shape);
    if (stage + 1 < free_us_.size()) at += exposed * model_->handoff_us(stage, shape);
    free_us_[stage] = at;  // the sender is busy until its hand-off is out
  }
  return at;
}

}  // namespace runtime
