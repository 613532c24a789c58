// A console's question on its way through the mailboxes: net thread -> supervisor -> scheduler, who
// knows the moves, -> cache manager, who knows the rest and answers between two batches.
#pragma once

#include <functional>
#include <utility>
#include <variant>

#include "kernels/base/result.hpp"
#include "memory/cache_report.hpp"
#include "memory/move_log.hpp"

namespace actors {

using Inspection = std::variant<memory::ReportQuery, memory::MoveQuery, memory::NodeOrder>;
using InspectionAnswer =
    std::variant<memory::CacheReport, memory::MovePage, memory::NodeOutcome, kernels::Error>;

// Invariant: answered exactly once; one that is lost on the way (the engine ended) is answered with
// an error.
class InspectCall {
 public:
  InspectCall() = default;
  InspectCall(Inspection question, std::function<void(InspectionAnswer)> answer)
      : question_(question), answer_(std::move(answer)) {}
  InspectCall(InspectCall&& other) noexcept
      : question_(other.question_), answer_(std::exchange(other.answer_, nullptr)) {}
  InspectCall& operator=(InspectCall&& other) noexcept {
    std::swap(question_, other.question_);
    std::swap(answer_, other.answer_);
    return *this;
  }
  ~InspectCall() {
    if (answer_)
      answer(kernels::Error{kernels::ErrorCode::kUnavailable, "the engine is not running", {}});
  }

  const Inspection& question() const { return question_; }
  void answer(InspectionAnswer value) {
    if (answer_) std::exchange(answer_, nullptr)(std::move(value));
  }

 private:
  Inspection question_;
  std::function<void(InspectionAnswer)> answer_;
};

}  // namespace actors
