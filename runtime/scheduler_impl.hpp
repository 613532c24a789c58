// The parts of the scheduler core. What an event means stands in scheduler.cpp, what a result means
// in scheduler_results.cpp, how a sequence's admission or life ends in scheduler_ends.cpp, and what
// a run of results leaves that decide nothing in scheduler_steady.cpp.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/admission.hpp"
#include "runtime/plan_builder.hpp"
#include "runtime/request_queue.hpp"
#include "runtime/request_table.hpp"
#include "runtime/scheduler.hpp"

namespace runtime {

// Invariant: a sequence is in exactly one of: the queue, waiting for its Opened, running.
struct Scheduler::Impl {
  using Phase = Sequence::Phase;
  struct Ending {
    FinishReason reason = FinishReason::kStop;
    std::optional<TokenId> stop_id;
    std::optional<kernels::Error> error;
    bool poisoned = false;  // what it computed is not finite: nothing of it may be used
  };

  explicit Impl(const SchedulerConfig& settings);

  void absorb(SchedulerEvent&& event);
  void plan(uint64_t now_us);
  void check() const;

  // ---- events ----
  void on(Submit&& event);
  void on(Abort&& event) { abort(event.request, event.code); }
  void on(StopSequence&& event);
  void on(memory::CacheReply&& reply);
  void on(StepResult&& result);
  void on(Tick&&) {}
  void on_answer(memory::Opened&& opened);
  void on_answer(memory::Grown&& grown);
  void on_answer(memory::Refused&& refused);
  void on_answer(memory::Refilled&& refilled);
  void on_row(Sequence& sequence, const PlannedStep::Row& planned, RowResult&& row);
  void on_snapshots(Sequence& sequence, const PlannedStep::Row& planned);
  void on_prompt(Sequence& sequence, const PlannedStep::Row& planned, RowResult& row);
  void on_token(Sequence& sequence, RowResult& row);

  // ---- ends ----
  void abort(RequestId request, kernels::ErrorCode code);
  void expire(uint64_t now_us);
  void retract(Sequence& sequence);
  void restart(Sequence& sequence);
  void finish(Sequence& sequence, Ending ending);
  void donate(Sequence& sequence, const Snapshot& snapshot, bool refill);
  void donate_kept(Sequence& sequence, uint32_t positions_max);
  void end_admission(Sequence& sequence, Admission::Reason reason);

  // ---- planning ----
  void send_plans();
  void log_head();  // what the head moves, before it is sent
  void grow();
  void admit();

  // ---- runs of steps ----
  uint32_t steady_steps() const;
  uint32_t steady_steps(const Sequence& sequence) const;
  bool is_plain(const PlannedStep& planned) const;
  void skip(uint32_t steps, const TokenSource& tokens);

  Sequence* find(SequenceId id) {
    const auto found = sequences.find(id);
    return found == sequences.end() ? nullptr : &found->second;
  }
  // The one that may get answers to this ticket, if it is still there.
  Sequence* find(SequenceId id, uint64_t ticket) {
    Sequence* sequence = find(id);
    return sequence && sequence->now.ticket == ticket ? sequence : nullptr;
  }
  bool ends(const Sequence& sequence, TokenId token) const;
  template <class Output>
  void send(Output&& output) {
    out->emplace_back(std::forward<Output>(output));
  }
  template <class Event>
  void tell(Event&& event) {  // to the session
    out->emplace_back(std::in_place_type<SessionEvent>, std::forward<Event>(event));
  }

  SchedulerConfig config;
  Admission admission;
  PlanBuilder builder;
  RequestQueue queue;
  std::unordered_map<SequenceId, Sequence> sequences;  // node-based: pointers stay valid
  RequestTable requests;
  std::vector<Sequence*> running;     // in the order of goes_before()
  PlanHead head;                      // of the next plan
  memory::MoveLog moves;
  uint64_t last_step = 0;             // sent
  std::deque<PlannedStep> in_flight;  // plans with a Forward whose result is not back
  std::vector<PlannedStep> spare;     // their memory, reused
  uint64_t arrivals = 0;
  SchedulerStats counters;
  std::vector<SchedulerOutput>* out = nullptr;
};

}  // namespace runtime
