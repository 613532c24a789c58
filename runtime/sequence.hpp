// The running life of one choice of one request, as the scheduler keeps it. It outlives
// retractions: what belongs to one admission (blocks, what was planned) starts over with each, the
// tokens and counts stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/cache_messages.hpp"
#include "runtime/checkpoint_planner.hpp"
#include "runtime/request.hpp"
#include "runtime/shared_tokens.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// Invariant while running: consumed <= limit_positions(), and every consumed position has a page
// the worker was told of. A snapshot slot is in exactly one of: spare, kept, a plan under way.
struct Sequence {
  enum class Phase : uint8_t {
    kQueued,   // holds nothing
    kOpening,  // its Open is under way
    kRunning,  // holds a working slot
  };

  // ---- what was asked ----
  RequestId request;
  SequenceId id;
  int32_t priority = 0;
  uint64_t arrival = 0;        // unique, ascending
  SharedTokens prompt;         // the other choices of the prompt hold it too
  uint32_t prompt_tokens = 0;  // prompt.size()
  uint32_t max_tokens = 0;
  SamplingParams sampling;
  bool prompt_logprobs = false;
  uint64_t name_space = 0;  // of its cache key

  // ---- what is known, across retractions ----
  std::vector<TokenId> output;  // whose results are back
  // Of positions 1, 2, ... as far as results are back; emptied when sent.
  std::vector<PositionLogprobs> prompt_values;
  bool prompt_sent = false;
  uint32_t prompt_counted = 0;            // prompt tokens already in the statistics
  std::optional<uint32_t> cached_tokens;  // restored by its first admission
  uint32_t computed = 0;                  // known positions that some admission computed
  bool cold = false;  // a copy in host memory had other bytes: it starts from nothing, for good
  bool lean = false;  // asks for no snapshot slots: with them it was refused a page even alone

  // ---- this admission ----
  struct Admission {
    uint64_t ticket = 0;  // its name; 0 = none
    SlotId working;
    std::vector<SlotId> spare;         // snapshot slots with nothing worth keeping
    std::optional<Snapshot> kept;      // the rolling snapshot, whose result is back
    uint32_t under_way = 0;            // snapshots in plans sent
    std::vector<bool> donations;       // not yet answered, oldest first: is a slot due in return?
    uint32_t pages = 0;                // granted
    std::vector<PageId> fresh_pages;   // granted, not yet named in a plan
    std::optional<SlotId> checkpoint;  // what the working slot starts from
    bool staged = false;               // it is there already; without both: zeros
    uint32_t shared = 0;               // positions whose pages it only reads
    uint32_t told = 0;                 // key elements the cache knows
    bool started = false;              // the worker has a record of it
    // course.tokens: known at SequenceStart; literal ids up to there, then the last sampled one.
    CheckpointPlanner::Course course;
    uint32_t consumed = 0;   // positions whose state the plans sent restore or compute
    uint64_t last_step = 0;  // the step that last had a row of it
  };
  Phase phase = Phase::kQueued;
  Admission now;

  // ---- the Open or Grow under way ----
  uint32_t asked_pages = 0;  // 0 = none
  // What had been given back before it: more since means that a refusal is out of date.
  uint64_t asked_at_return = 0;

  uint32_t output_tokens() const { return static_cast<uint32_t>(output.size()); }
  uint32_t known_tokens() const { return prompt_tokens + output_tokens(); }
  TokenId token(uint32_t position) const {
    return position < prompt_tokens ? prompt[position] : output[position - prompt_tokens];
  }
  std::vector<TokenId> tokens() const;  // all that are known, in order
  // The same as elements of a cache key: positions [begin, end).
  std::vector<memory::KeyElement> key(uint32_t begin, uint32_t end) const;
  // Positions consumed in a whole life: the last sampled token is never an input.
  uint32_t limit_positions() const { return prompt_tokens + std::max(max_tokens, 1u) - 1; }
  bool prefilling() const { return now.consumed < now.course.tokens; }
  // Snapshot slots it owns or is about to get.
  uint32_t snapshot_slots() const;
};

inline std::vector<TokenId> Sequence::tokens() const {
  std::vector<TokenId> all;
  all.reserve(known_tokens());
  all.insert(all.end(), prompt.begin(), prompt.end());
  all.insert(all.end(), output.begin(), output.end());
  return all;
}

inline std::vector<memory::KeyElement> Sequence::key(uint32_t begin, uint32_t end) const {
  if (begin >= end) return {};
  const uint32_t middle = std::clamp(prompt_tokens, begin, end);
  std::vector<memory::KeyElement> elements;
  elements.reserve(end - begin);
  // Widened in one pass, as the unsigned numbers that they are: prompts are long.
  const auto* ids = reinterpret_cast<const uint32_t*>(prompt.ids().data());
  if (begin < middle) elements.insert(elements.end(), ids + begin, ids + middle);
  for (uint32_t position = middle; position < end; ++position)
    elements.push_back(static_cast<uint32_t>(output[position - prompt_tokens]));
  return elements;
}

inline uint32_t Sequence::snapshot_slots() const {
  const auto due = std::count(now.donations.begin(), now.donations.end(), true);
  return static_cast<uint32_t>(now.spare.size()) + (now.kept ? 1 : 0) + now.under_way +
         static_cast<uint32_t>(due);
}

// The order of admission and of prefill: higher priority first, then first come, first served.
inline bool goes_before(const Sequence& a, const Sequence& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.arrival < b.arrival;
}

}  // namespace runtime
