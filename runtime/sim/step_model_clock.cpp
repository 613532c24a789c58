#include "runtime/sim/step_model_clock.hpp"

#include <algorithm>
#include <cmath>

namespace runtime {
namespace {

uint64_t nanoseconds(double us) { return static_cast<uint64_t>(std::llround(us * 1000)); }

}  // namespace

StepModelClock::StepModelClock(const StepModel& model, uint32_t page_tokens)
    : model_(model),
      pipeline_(model),
      page_bytes_(page_tokens * model.memory().kv_position_bytes) {}

// Read and written once; all copies of a plan are one kernel's work.
double StepModelClock::copies_us(const PlanCopies& copies) const {
  const double bytes = copies.states * model_.memory().state_bytes + copies.pages * page_bytes_;
  if (bytes == 0) return 0;
  return model_.device().kernel_us + 2 * bytes / model_.device().stream_bytes_per_us;
}

double StepModelClock::link_us(double states, double pages) const {
  const double bytes = states * model_.memory().state_bytes + pages * page_bytes_;
  return bytes == 0 ? 0 : bytes / model_.device().host_bytes_per_us;
}

DeviceTimes StepModelClock::start(const DeviceWork& work, uint64_t now_ns) {
  const double now_us = static_cast<double>(now_ns) / 1000;
  const PlanCopies& copies = work.copies;
  double ready_us = now_us + copies_us(copies);
  if (copies.states_out + copies.pages_out > 0) {
    // What leaves is read on a side stream; only what comes back is waited for.
    out_free_us_ =
        std::max(out_free_us_, now_us) + link_us(copies.states_out, copies.pages_out);
  }
  if (copies.states_in + copies.pages_in > 0) {
    in_free_us_ = std::max(in_free_us_, now_us) + link_us(copies.states_in, copies.pages_in);
    ready_us = std::max(ready_us, in_free_us_);
  }
  if (work.forward.empty()) {
    done_us_ = std::max(done_us_, ready_us);
    const uint64_t free_ns = std::max(now_ns, nanoseconds(ready_us));
    return {free_ns, std::max(free_ns, nanoseconds(done_us_))};
  }
  // A running sequence's next token needs the last plan's, which a pipeline may still work on.
  if (work.forward.decode_rows > 0) ready_us = std::max(ready_us, done_us_);
  done_us_ = std::max(done_us_, pipeline_.enter(work.forward, ready_us, work.more_waits));
  const uint64_t free_ns = std::max(now_ns, nanoseconds(pipeline_.next_entry_us()));
  return {free_ns, std::max(free_ns, nanoseconds(done_us_))};
}

}  // namespace runtime
