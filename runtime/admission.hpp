// How much a sequence asks for, and when it may ask. All prompt pages and two plans' worth of
// decode positions are reserved at admission, so a prefill never stops half-way for want of a page;
// later pages are asked for two plans ahead.
//
// The cache manager decides; this class only keeps count of what was claimed from it, so that a
// Reserve that must fail is not sent, and that admission leaves the running sequences one page each
// to grow into (or it would retract what it has just admitted).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/base/result.hpp"
#include "memory/cache_core.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/sequence.hpp"

namespace runtime {

// Invariant: claimed blocks == granted to admissions that have not ended + asked for and not
// answered.
class Admission {
 public:
  explicit Admission(const SchedulerConfig& config);

  // Why this sequence could never run, not even alone.
  std::optional<kernels::Error> refuse(const NewSequence& sequence) const;

  // May the head of the queue ask now? `running` are those that hold blocks.
  bool may_reserve(const Sequence& head, std::span<Sequence* const> running) const;
  memory::Reserve reserve_first(Sequence& sequence);
  // Empty: enough room, or the sequence has already asked.
  std::optional<memory::Reserve> reserve_growth(Sequence& sequence);

  // The answer to `sequence`'s ticket: takes over the blocks.
  void granted(Sequence& sequence, memory::Grant&& grant);
  // Undoes the claim. True: nothing was released since it asked, so asking again at once is
  // pointless.
  bool refused(Sequence& sequence);
  // Everything the admission holds or has asked for is given back.
  memory::Release release(Sequence& sequence);

  void unblock() { blocked_ = false; }  // the next head may ask, whatever the last was told
  bool room_for(const Sequence& sequence,
                uint32_t positions) const;  // have its pages room for so many?
  uint32_t claimed_slots() const { return claimed_slots_; }
  uint32_t claimed_pages() const { return claimed_pages_; }

 private:
  uint32_t pages_for(uint64_t positions) const;
  uint32_t first_pages(const Sequence& sequence) const;
  memory::Reserve ask(Sequence& sequence, uint32_t slots, uint32_t pages);

  SchedulerConfig config_;
  uint32_t slot_limit_;
  uint32_t claimed_slots_ = 0, claimed_pages_ = 0;
  uint64_t releases_ = 0;  // sent so far
  uint64_t last_ticket_ = 0;
  bool blocked_ = false;  // the head was refused, and nothing has come back since
};

}  // namespace runtime
