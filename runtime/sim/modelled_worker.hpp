// The worker of a modelled device: executes step plans as the engine does, but holds no bytes. What
// a row samples comes from a source of answers; how long a plan takes, a clock tells from the work
// that the plan amounts to.
// Invariant: rows of a sequence continue where its last one ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/sim/speculation.hpp"
#include "runtime/sim/step_shape.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// What a plan copies beside its forward.
struct PlanCopies {
  uint32_t states = 0;  // whole states on the device: restored, snapshot, moved, cleared
  uint32_t pages = 0;   // whole KV pages on the device: moved
  uint32_t states_in = 0, pages_in = 0;    // from host memory
  uint32_t states_out = 0, pages_out = 0;  // to it
  bool any() const {
    return (states | pages | states_in | pages_in | states_out | pages_out) != 0;
  }
};

// What a plan gives a device to do.
struct DeviceWork {
  StepShape forward;  // empty: none
  PlanCopies copies;
  bool more_waits = false;  // another plan stands behind it
};

// When a modelled device takes the next plan, and when this one's results are out. Nanoseconds of
// the virtual clock.
struct DeviceTimes {
  uint64_t free_ns = 0, done_ns = 0;
};

// How long a modelled device takes.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  // The device is free at `now_ns`; neither time lies before it, and results come out in order.
  virtual DeviceTimes start(const DeviceWork& work, uint64_t now_ns) = 0;
};

// The token that sequence samples as its output number `index` (from 0).
using AnswerSource = std::function<TokenId(SequenceId sequence, uint32_t index)>;

class ModelledWorker {
 public:
  // `speculation`: none, or what must outlive it.
  explicit ModelledWorker(AnswerSource answers, Speculation* speculation = nullptr)
      : answers_(std::move(answers)), speculation_(speculation) {}

  struct Outcome {
    std::optional<StepResult> result;  // iff the plan holds a Forward
    DeviceWork work;
  };
  Outcome run(const StepPlan& plan);
  // As if it had run plans of one more row each, so that the sequence has `length` positions now.
  void skip(SequenceId sequence, uint32_t length);
  // What a row of one token gives.
  RowResult decoded(SequenceId sequence, uint32_t length) const;
  const AnswerSource& answers() const { return answers_; }

 private:
  struct Record {
    uint32_t prompt_tokens = 0;
    uint32_t length = 0;  // positions consumed
    Speculation::Block block = {};
  };
  void run(const memory::Bind&) {}
  void run(const memory::Move& move);
  void run(const memory::StageOut& stage);
  void run(const memory::StageIn& stage);
  void run(const memory::Discard&) {}
  void run(const memory::Spill&) {}
  void run(const memory::Clear&) { ++outcome_.work.copies.states; }
  void run(const memory::Restore&) { ++outcome_.work.copies.states; }
  void run(const Close& close);
  void run(const Forward& forward);
  RowResult row(const PlanRow& row);
  void decode(Record& record, const PlanRow& row);

  AnswerSource answers_;
  Speculation* speculation_;
  std::unordered_map<SequenceId, Record> records_;
  Outcome outcome_;
};

}  // namespace runtime
