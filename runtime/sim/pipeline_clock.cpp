#include "runtime/sim/pipeline_clock.hpp"

#include <algorithm>

namespace runtime {

double PipelineClock::next_entry_us() const {
  const bool full = finished_us_.size() == free_us_.size();
  return std::max(free_us_.front(), full ? finished_us_.front() : 0.0);
}

double PipelineClock::enter(const StepShape& shape, double ready_us, bool queued) {
  const double exposed = queued ? 1 - model_->device().handoff_hidden : 1;
  double at = std::max(ready_us, next_entry_us());
  for (size_t stage = 0; stage < free_us_.size(); ++stage) {
    at = std::max(at, free_us_[stage]) + model_->stage_us(stage, shape);
    if (stage + 1 < free_us_.size()) at += exposed * model_->handoff_us(stage, shape);
    free_us_[stage] = at;  // the sender is busy until its hand-off is out
  }
  if (finished_us_.size() == free_us_.size()) finished_us_.pop_front();
  finished_us_.push_back(at);
  return at;
}

}  // namespace runtime
