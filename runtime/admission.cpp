#include "runtime/admission.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

Admission::Admission(const SchedulerConfig& config)
    : config_(config), slot_limit_(std::min(config.max_running, config.capacity.states.total)) {
  VERIFY(config.page_tokens > 0);
}

uint32_t Admission::pages_for(uint64_t positions) const {
  return static_cast<uint32_t>((positions + config_.page_tokens - 1) / config_.page_tokens);
}

std::optional<kernels::Error> Admission::refuse(const NewSequence& sequence) const {
  using std::to_string;
  const uint64_t prompt = sequence.prompt.size();
  const uint64_t context = config_.context_length;
  if (prompt == 0)
    return kernels::invalid("the prompt is empty: it needs at least one token", "prompt");
  if (prompt > context || (prompt == context && sequence.max_tokens > 0)) {
    return kernels::invalid("prompt of " + to_string(prompt) +
                                " tokens leaves no room for output in the context length of " +
                                to_string(context) + " tokens",
                            "prompt");
  }
  if (prompt + sequence.max_tokens > context) {
    return kernels::invalid("prompt of " + to_string(prompt) + " tokens plus max_tokens " +
                                to_string(sequence.max_tokens) + " exceeds the context length of " +
                                to_string(context) + " tokens",
                            "max_tokens");
  }
  const uint64_t positions = prompt + std::max(sequence.max_tokens, 1u) - 1;
  const uint32_t pages = pages_for(positions);
  if (pages > config_.capacity.pages.total) {
    return kernels::invalid("prompt of " + to_string(prompt) + " tokens plus max_tokens " +
                                to_string(sequence.max_tokens) + " needs " + to_string(pages) +
                                " KV pages, the pool holds " +
                                to_string(config_.capacity.pages.total),
                            "max_tokens");
  }
  if (slot_limit_ == 0)
    return kernels::invalid("a sequence needs a state slot, the pool holds none");
  return std::nullopt;
}

// What is known now, and as many decode positions as two plans take.
uint32_t Admission::first_pages(const Sequence& sequence) const {
  const uint64_t wanted = uint64_t{sequence.known_tokens()} + config_.plans_in_flight;
  return pages_for(std::min<uint64_t>(wanted, sequence.limit_positions()));
}

bool Admission::may_reserve(const Sequence& head, std::span<Sequence* const> running) const {
  if (blocked_ || claimed_slots_ >= slot_limit_) return false;
  const uint32_t pages = first_pages(head);
  if (claimed_slots_ == 0) return true;
  uint64_t growing = 0;  // running sequences that will ask for another page some day
  for (const Sequence* sequence : running) {
    if (!room_for(*sequence, sequence->limit_positions())) ++growing;
  }
  return uint64_t{claimed_pages_} + pages + growing <= config_.capacity.pages.total;
}

memory::Reserve Admission::ask(Sequence& sequence, uint32_t slots, uint32_t pages) {
  VERIFY(sequence.ticket == 0);
  sequence.ticket = ++last_ticket_;
  sequence.asked_pages = pages;
  sequence.asked_at_release = releases_;
  claimed_slots_ += slots;
  claimed_pages_ += pages;
  return {sequence.id, slots, pages, sequence.ticket};
}

memory::Reserve Admission::reserve_first(Sequence& sequence) {
  VERIFY(sequence.phase == Sequence::Phase::kQueued);
  sequence.phase = Sequence::Phase::kReserving;
  return ask(sequence, 1, first_pages(sequence));
}

std::optional<memory::Reserve> Admission::reserve_growth(Sequence& sequence) {
  VERIFY(sequence.phase == Sequence::Phase::kRunning);
  if (sequence.ticket != 0) return std::nullopt;
  const uint64_t ahead = std::max(sequence.now.consumed, sequence.now.start_tokens) +
                         uint64_t{config_.plans_in_flight};
  const uint32_t wanted = pages_for(std::min<uint64_t>(ahead, sequence.limit_positions()));
  if (wanted <= sequence.now.pages) return std::nullopt;
  return ask(sequence, 0, wanted - sequence.now.pages);
}

void Admission::granted(Sequence& sequence, memory::Grant&& grant) {
  VERIFY(grant.ticket == sequence.ticket);
  VERIFY(grant.pages.size() == sequence.asked_pages);
  Sequence::Admission& now = sequence.now;
  if (sequence.phase == Sequence::Phase::kReserving) {
    VERIFY(grant.slots.size() == 1);
    now.slot = grant.slots.front();
    now.start_tokens = sequence.known_tokens();
    sequence.phase = Sequence::Phase::kRunning;
  } else {
    VERIFY(grant.slots.empty());
  }
  now.pages += sequence.asked_pages;
  now.fresh_pages.insert(now.fresh_pages.end(), grant.pages.begin(), grant.pages.end());
  now.binds.insert(now.binds.end(), grant.binds.begin(), grant.binds.end());
  sequence.ticket = 0;
  sequence.asked_pages = 0;
}

bool Admission::refused(Sequence& sequence) {
  VERIFY(sequence.ticket != 0);
  claimed_pages_ -= sequence.asked_pages;
  sequence.ticket = 0;
  sequence.asked_pages = 0;
  const bool current = sequence.asked_at_release == releases_;
  if (sequence.phase == Sequence::Phase::kReserving) {
    --claimed_slots_;
    sequence.phase = Sequence::Phase::kQueued;
    blocked_ = current;
  }
  return current;
}

memory::Release Admission::release(Sequence& sequence) {
  VERIFY(sequence.phase != Sequence::Phase::kQueued);
  --claimed_slots_;
  claimed_pages_ -= sequence.now.pages + sequence.asked_pages;
  ++releases_;
  blocked_ = false;
  // A Grant that is still on its way carries an old ticket and is dropped: this Release reaches the
  // cache manager behind the Reserve, and gives back what that one took.
  sequence.ticket = 0;
  sequence.asked_pages = 0;
  sequence.now = {};
  ++sequence.epoch;
  sequence.phase = Sequence::Phase::kQueued;
  return {sequence.id};
}

bool Admission::room_for(const Sequence& sequence, uint32_t positions) const {
  return pages_for(positions) <= sequence.now.pages;
}

}  // namespace runtime
