// Steps that decide nothing, made many at a time: the device's clock is asked for each, and all
// else is moved on by their number.
#include <algorithm>
#include <utility>
#include <variant>

#include "kernels/base/verify.hpp"
#include "runtime/sim/virtual_server.hpp"

namespace runtime {
namespace {

constexpr uint32_t kWorthwhile = 2;  // steps: fewer are quicker made than skipped

bool is_plain(const StepPlan& plan) {
  const auto* forward = plan.commands.size() == 1 ? std::get_if<Forward>(&plan.commands.front())
                                                  : nullptr;
  return forward != nullptr && std::all_of(forward->rows.begin(), forward->rows.end(),
                                           [](const PlanRow& row) {
                                             return !row.start && row.new_pages.empty() &&
                                                    row.snapshots.empty();
                                           });
}

StepPlan decode_plan(uint64_t step, const std::vector<RowResult>& first_rows, uint32_t index) {
  Forward forward;
  forward.step = step;
  forward.rows.reserve(first_rows.size());
  for (const RowResult& first : first_rows) {
    PlanRow row;
    row.sequence = first.sequence;
    row.position = first.token_position - 1 + index;
    row.count = 1;
    row.sample = true;
    forward.rows.push_back(std::move(row));
  }
  StepPlan plan;
  plan.commands.emplace_back(std::move(forward));
  return plan;
}

}  // namespace

// Do all plans under way hold a row of one token of the same sequences, and nothing else that is
// not done yet? The scheduler says that they are the running ones.
bool VirtualServer::is_steady() const {
  if (!events_.empty() || running_.empty() || config_.speculation != nullptr) return false;
  if (running_.size() + plans_.size() != config_.scheduler.plans_in_flight) return false;
  for (const Running& running : running_) {
    const StepShape& shape = running.shape;
    if (!running.result || shape.prefill_rows > 0 ||
        shape.decode_rows != running.result->rows.size())
      return false;
  }
  return std::all_of(plans_.begin(), plans_.end(), is_plain);
}

// As settle() and advance() do, with plans that are not spelled out: running_ has no results, and
// plans_ is not kept.
SkippedSteps VirtualServer::pass_steps(uint64_t until_ns, uint32_t steps_max) {
  SkippedSteps out;
  out.first = running_.front().shape;
  StepShape shape = running_.back().shape;  // of the last that was started
  size_t waiting = plans_.size();
  while (out.steps.size() < steps_max) {
    uint64_t next_ns = waiting > 0 ? free_ns_ : UINT64_MAX;
    if (!running_.empty()) next_ns = std::min(next_ns, running_.front().done_ns);
    if (next_ns > until_ns) break;
    if (!running_.empty() && running_.front().done_ns <= next_ns) {
      if (running_.size() > 1 && running_[1].done_ns <= next_ns) break;  // two results at once
      out.steps.push_back({running_.front().begin_ns, next_ns});
      running_.pop_front();
      ++waiting;  // the plan that its result is followed by
    }
    now_ns_ = next_ns;
    while (waiting > 0 && free_ns_ <= now_ns_) {
      --waiting;
      shape.advance_decode();
      const DeviceTimes times = clock_.start({shape, {}, waiting > 0}, now_ns_);
      VERIFY(times.free_ns >= now_ns_ && times.done_ns >= times.free_ns);
      free_ns_ = times.free_ns;
      running_.push_back({now_ns_, times.done_ns, std::nullopt, shape});
    }
  }
  return out;
}

// The plans under way, spelled out again: `done` steps behind the first that was skipped.
void VirtualServer::shift_plans(uint64_t first_step, const std::vector<RowResult>& first_rows,
                                size_t done) {
  auto index = static_cast<uint32_t>(done);
  for (Running& running : running_) {
    StepResult result;
    result.step = first_step + index;
    result.rows.reserve(first_rows.size());
    for (const RowResult& first : first_rows)
      result.rows.push_back(worker_.decoded(first.sequence, first.token_position + index));
    running.result = std::move(result);
    ++index;
  }
  for (const RowResult& first : first_rows)
    worker_.skip(first.sequence, first.token_position + index - 1);
  plans_.clear();
  for (const size_t end = done + config_.scheduler.plans_in_flight; index < end; ++index)
    plans_.push_back(decode_plan(first_step + index, first_rows, index));
}

bool VirtualServer::skip(uint64_t until_ns, uint32_t steps_max) {
  const uint32_t steady = std::min(steps_max, scheduler_.steady_steps());
  if (steady < kWorthwhile || !is_steady()) return false;
  if (const auto deadline = scheduler_.next_deadline_us()) {
    if (*deadline * 1000 <= now_ns_) return false;
    until_ns = std::min(until_ns, *deadline * 1000 - 1);
  }
  const uint64_t begin_ns = now_ns_, first_step = running_.front().result->step;
  const std::vector<RowResult> first_rows = std::move(running_.front().result->rows);
  SkippedSteps skipped = pass_steps(until_ns, steady);
  shift_plans(first_step, first_rows, skipped.steps.size());
  if (skipped.steps.empty()) return now_ns_ != begin_ns;
  scheduler_.skip(static_cast<uint32_t>(skipped.steps.size()), worker_.answers());
  if (config_.check) scheduler_.check();
  for (const RowResult& row : first_rows) skipped.rows.push_back(row.sequence);
  sink_.on_skipped(skipped);
  return true;
}

}  // namespace runtime
