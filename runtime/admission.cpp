#include "runtime/admission.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

Admission::Admission(const SchedulerConfig& config)
    : config_(config), planner_(config.page_tokens) {
  VERIFY(config.max_running > 0);
}

uint32_t Admission::pages_for(uint64_t positions) const {
  return static_cast<uint32_t>(memory::pages_for(positions, config_.page_tokens));
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
  if (pages > config_.pages_max) {
    return kernels::invalid("prompt of " + to_string(prompt) + " tokens plus max_tokens " +
                                to_string(sequence.max_tokens) + " needs " + to_string(pages) +
                                " KV pages, the memory holds " + to_string(config_.pages_max) +
                                " beside one state",
                            "max_tokens");
  }
  return std::nullopt;
}

bool Admission::may_open() const {
  if (blocked_) return false;
  if (admitted_ == 0) return true;
  return !yielding_ && admitted_ < config_.max_running && (refused_ticket_ == 0 || opening_ == 0);
}

void Admission::ask(Sequence& sequence, uint32_t pages) {
  VERIFY(sequence.asked_pages == 0);
  VERIFY(pages > 0);
  sequence.asked_pages = pages;
  sequence.asked_at_return = returns_;
}

memory::Open Admission::open(Sequence& sequence) {
  VERIFY(sequence.phase == Sequence::Phase::kQueued);
  sequence.phase = Sequence::Phase::kOpening;
  ++admitted_;
  ++opening_;
  memory::Open open;
  const uint32_t known = sequence.known_tokens();
  open.sequence = sequence.id;
  open.ticket = sequence.now.ticket = ++last_ticket_;
  open.key = {sequence.name_space, sequence.key(0, known)};
  // What is known now, and as many decode positions as the plans under way take.
  open.positions = static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{known} + config_.plans_in_flight, sequence.limit_positions()));
  ask(sequence, pages_for(open.positions));
  if (!config_.prefix_cache) return open;
  const uint32_t limit = sequence.limit_positions();
  if (!sequence.lean) open.snapshots = planner_.useful_slots(0, limit);
  // Prompt log-probabilities are of rows that are computed here.
  const bool from_zero = sequence.prompt_logprobs && !sequence.prompt_sent;
  if (!from_zero && !sequence.cold) open.restore_limit = known - 1;
  return open;
}

std::optional<memory::Grow> Admission::grow(Sequence& sequence) {
  VERIFY(sequence.phase == Sequence::Phase::kRunning);
  if (sequence.asked_pages != 0) return std::nullopt;
  const uint64_t ahead = std::max(sequence.now.consumed, sequence.now.course.tokens) +
                         uint64_t{config_.plans_in_flight};
  const uint32_t wanted = pages_for(std::min<uint64_t>(ahead, sequence.limit_positions()));
  if (wanted <= sequence.now.pages) return std::nullopt;
  ask(sequence, wanted - sequence.now.pages);
  return memory::Grow{sequence.id, sequence.now.ticket, sequence.asked_pages};
}

void Admission::opened(Sequence& sequence, memory::Opened&& opened) {
  VERIFY(sequence.phase == Sequence::Phase::kOpening);
  VERIFY(opened.pages.size() == sequence.asked_pages);
  VERIFY((opened.checkpoint.has_value() || opened.staged) == (opened.position > 0));
  VERIFY(!opened.checkpoint || !opened.staged);
  VERIFY(opened.position < sequence.known_tokens());
  VERIFY(opened.position <= opened.shared);
  --opening_;
  if (opened.ticket > refused_ticket_) refused_ticket_ = 0;
  Sequence::Admission& now = sequence.now;
  now.working = opened.working;
  now.spare = std::move(opened.snapshots);
  now.pages = sequence.asked_pages;
  now.fresh_pages = std::move(opened.pages);
  now.checkpoint = opened.checkpoint;
  now.staged = opened.staged;
  now.shared = opened.shared;
  now.told = sequence.known_tokens();
  now.course = {opened.position, sequence.known_tokens(), sequence.limit_positions(), opened.branch,
                opened.position};
  now.consumed = opened.position;
  sequence.asked_pages = 0;
  sequence.phase = Sequence::Phase::kRunning;
}

void Admission::grown(Sequence& sequence, memory::Grown&& grown) {
  VERIFY(sequence.phase == Sequence::Phase::kRunning);
  VERIFY(grown.pages.size() == sequence.asked_pages);
  Sequence::Admission& now = sequence.now;
  now.pages += sequence.asked_pages;
  now.fresh_pages.insert(now.fresh_pages.end(), grown.pages.begin(), grown.pages.end());
  sequence.asked_pages = 0;
}

bool Admission::refused(Sequence& sequence) {
  VERIFY(sequence.asked_pages != 0);
  sequence.asked_pages = 0;
  const bool current = sequence.asked_at_return == returns_;
  if (sequence.phase == Sequence::Phase::kOpening) {
    --admitted_;
    --opening_;
    sequence.now = {};
    sequence.phase = Sequence::Phase::kQueued;
    blocked_ = current;
    refused_ticket_ = last_ticket_;
  }
  return current;
}

memory::Donate Admission::donate(Sequence& sequence, const Snapshot& snapshot, bool refill) {
  VERIFY(snapshot.position % planner_.grid() == 0);
  VERIFY(snapshot.position <= sequence.known_tokens());
  Sequence::Admission& now = sequence.now;
  memory::Donate donate{sequence.id,
                        now.ticket,
                        snapshot.slot,
                        snapshot.position,
                        sequence.key(now.told, snapshot.position),
                        refill};
  now.told = std::max(now.told, snapshot.position);
  now.donations.push_back(refill);
  ++returns_;  // what lies in the tree can be evicted
  blocked_ = false;
  return donate;
}

memory::Drop Admission::drop(Sequence& sequence, Reason reason) {
  VERIFY(sequence.phase != Sequence::Phase::kQueued);
  --admitted_;
  if (sequence.phase == Sequence::Phase::kOpening) --opening_;
  ++returns_;
  blocked_ = false;
  yielding_ = reason == Reason::kYielded;
  const memory::Drop drop{sequence.id, sequence.now.ticket, reason == Reason::kPoisoned};
  // An answer that is still on its way carries this ticket and is passed over: the Drop reaches the
  // cache manager behind the request, and gives back what that one took.
  sequence.asked_pages = 0;
  sequence.now = {};
  sequence.phase = Sequence::Phase::kQueued;
  return drop;
}

bool Admission::room_for(const Sequence& sequence, uint32_t positions) const {
  return pages_for(positions) <= sequence.now.pages;
}

}  // namespace runtime
