// How much a sequence asks of the cache manager, and when it may ask. All prompt pages and two
// plans' worth of decode positions come with the admission, so a prefill never stops half-way for
// want of a page; later pages are asked for two plans ahead.
//
// The cache manager decides: cached blocks are evicted for whoever asks, so a refusal means that
// what is held by sequences leaves no room. It is remembered until something is given back, and a
// sequence that yielded its blocks waits until another has ended, so that nobody takes back at once
// what it gave. Whoever is refused a page though nobody else holds any does without the snapshot
// slots it only wished for, and so comes to run: refuse() turned away what cannot run alone.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/result.hpp"
#include "memory/cache_messages.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/sequence.hpp"

namespace runtime {

// Invariant: admitted() == sequences that are opening or running.
class Admission {
 public:
  explicit Admission(const SchedulerConfig& config);

  // Why this sequence could never run, not even alone.
  std::optional<kernels::Error> refuse(const NewSequence& sequence) const;

  // May the head of the queue ask now?
  bool may_open() const;
  memory::Open open(Sequence& sequence);
  // Empty: enough room, or the sequence has already asked.
  std::optional<memory::Grow> grow(Sequence& sequence);

  // The answers to `sequence`'s ticket.
  void opened(Sequence& sequence, memory::Opened&& opened);
  void grown(Sequence& sequence, memory::Grown&& grown);
  // True: nothing was given back since it asked, so asking again at once is pointless.
  bool refused(Sequence& sequence);

  // What the snapshot holds becomes everybody's; false: the same for the admission's whole rest.
  memory::Donate donate(Sequence& sequence, const Snapshot& snapshot, bool refill);
  // Everything the admission holds or has asked for is given back.
  enum class Reason : uint8_t { kEnded, kPoisoned, kYielded };
  memory::Drop drop(Sequence& sequence, Reason reason);

  void unblock() { blocked_ = false; }  // the next head may ask, whatever the last was told
  bool room_for(const Sequence& sequence,
                uint32_t positions) const;  // have its pages room for so many?
  uint32_t admitted() const { return admitted_; }
  const CheckpointPlanner& planner() const { return planner_; }

 private:
  uint32_t pages_for(uint64_t positions) const;
  void ask(Sequence& sequence, uint32_t pages);

  SchedulerConfig config_;
  CheckpointPlanner planner_;
  uint32_t admitted_ = 0;
  uint64_t returns_ = 0;  // Donates and Drops sent so far
  uint64_t last_ticket_ = 0;
  uint32_t opening_ = 0;  // of admitted_, those whose Open is not answered
  bool blocked_ = false;  // an Open was refused, and nothing has come back since
  // No ticket beyond this one was granted since an Open was refused: the head asks alone, so that
  // smaller ones behind it do not take what it waits for. 0 = several may ask at once.
  uint64_t refused_ticket_ = 0;
  bool yielding_ = false;  // a sequence gave up its blocks, and none has ended since
};

}  // namespace runtime
