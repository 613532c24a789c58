// A whole server on a virtual clock: the real scheduler and cache cores and a modelled worker,
// joined as the actors join them, with messages that take no time. Only the worker's work does: its
// device takes one plan after another, and a plan's result arrives when its time is over.
//
// Deterministic: equal calls give equal events at equal times. Steps that decide nothing may be
// skipped, many in one call: what is after them is then as if each had been made.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "memory/cache_setup.hpp"
#include "memory/move_checker.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/sim/modelled_worker.hpp"

namespace runtime {

struct VirtualServerConfig {
  SchedulerConfig scheduler;  // pages_max comes from the cache
  memory::CacheSetup cache;
  Speculation* speculation = nullptr;  // of the worker; must outlive the server
  // Invariants of every core after each message, and the move log through its checker. Slow.
  bool check = false;
};

// What an admission found in the cache; of one sequence there are several after retractions.
struct CacheHit {
  SequenceId sequence;
  uint32_t looked_up = 0;  // positions of the key
  uint32_t kv = 0;         // whose KV was there
  uint32_t state = 0;      // up to which a state was there: these are not computed again
};

// Steps of the same rows, a token each: one after another, without anything between them.
struct SkippedSteps {
  struct Times {
    uint64_t begin_ns = 0, end_ns = 0;
  };
  std::vector<Times> steps;
  std::vector<SequenceId> rows;  // each heard one token at each step's end
  StepShape first;               // the later ones': advance_decode()
};

// What happens, as it happens.
class VirtualServerSink {
 public:
  virtual ~VirtualServerSink() = default;
  virtual void on_event(uint64_t now_ns, const SessionEvent& event) = 0;
  virtual void on_hit(uint64_t, const CacheHit&) {}
  // A forward that began at `begin_ns`, when its result is back.
  virtual void on_step(uint64_t, uint64_t, const StepShape&) {}
  // In the place of on_step and of on_event with every token. May not submit() or abort().
  virtual void on_skipped(const SkippedSteps& steps) = 0;
};

class VirtualServer {
 public:
  // `sink` may call submit() and abort(): they queue up. Throws std::invalid_argument for a cache
  // that cannot be.
  VirtualServer(const VirtualServerConfig& config, DeviceClock& clock, AnswerSource answers,
                VirtualServerSink& sink);

  void submit(Submit submit) { events_.push_back(std::move(submit)); }
  void abort(RequestId request) { events_.push_back(Abort{request}); }

  // Handles all that waits, without letting time pass.
  void settle();
  // When something happens next by itself; none: never. Valid after settle().
  std::optional<uint64_t> next_ns() const;
  // Moves the clock to `to_ns`, which is not beyond next_ns(), and settles.
  void advance(uint64_t to_ns);
  // Makes steps that decide nothing at once, while their results come at `until_ns` or before, and
  // at most `steps_max`. False: it did nothing, as something may be decided in the next one. Like
  // settle() it ends settled.
  bool skip(uint64_t until_ns, uint32_t steps_max);
  // Until nothing is left to do.
  void drain();

  uint64_t now_ns() const { return now_ns_; }
  bool idle() const {
    return scheduler_.idle() && running_.empty() && plans_.empty() && events_.empty();
  }
  const Scheduler& scheduler() const { return scheduler_; }
  const memory::HybridCache& cache() const { return *cache_; }

 private:
  struct Running {  // a plan that the device works on
    uint64_t begin_ns = 0, done_ns = 0;
    std::optional<StepResult> result;
    StepShape shape;
  };
  void dispatch(std::vector<SchedulerOutput>& outputs);
  void ask_cache(const memory::CacheRequest& request);
  bool start_plan();
  bool finish_plans();
  bool is_steady() const;
  SkippedSteps pass_steps(uint64_t until_ns, uint32_t steps_max);
  void shift_plans(uint64_t first_step, const std::vector<RowResult>& first_rows, size_t done);

  VirtualServerConfig config_;
  std::unique_ptr<memory::HybridCache> cache_;
  Scheduler scheduler_;
  ModelledWorker worker_;
  DeviceClock& clock_;
  VirtualServerSink& sink_;
  std::optional<memory::MoveChecker> moves_;
  uint64_t now_ns_ = 0;
  std::deque<SchedulerEvent> events_;
  std::deque<StepPlan> plans_;
  std::deque<Running> running_;  // in order; several in a pipeline
  uint64_t free_ns_ = 0;         // the device takes the next plan
  std::vector<SchedulerOutput> outputs_;
  memory::CacheReply reply_;  // to the requests of one planning
};

}  // namespace runtime
