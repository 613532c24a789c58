// The running life of one choice of one request, as the scheduler keeps it. It outlives
// retractions: what belongs to one admission (blocks, what was planned) starts over with each, the
// tokens and counts stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory/commands.hpp"
#include "runtime/request.hpp"
#include "runtime/shared_tokens.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// Invariant while running: consumed <= limit_positions(), and every consumed position has a page
// the worker was told of.
struct Sequence {
  enum class Phase : uint8_t {
    kQueued,     // holds nothing
    kReserving,  // its first Reserve is under way
    kRunning,    // holds a working slot
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

  // ---- what is known, across retractions ----
  std::vector<TokenId> output;  // whose results are back
  // Of positions 1, 2, ... as far as results are back; emptied when sent.
  std::vector<PositionLogprobs> prompt_values;
  bool prompt_sent = false;
  uint32_t prompt_counted = 0;  // prompt tokens already in the statistics

  // ---- this admission ----
  struct Admission {
    SlotId slot;
    uint32_t pages = 0;               // granted
    std::vector<PageId> fresh_pages;  // granted, not yet named in a plan
    std::vector<memory::Bind> binds;  // of what is granted and not yet bound by a plan
    bool started = false;             // the worker has a record of it
    // Tokens known at SequenceStart: literal ids up to here, then the last sampled one.
    uint32_t start_tokens = 0;
    uint32_t consumed = 0;   // positions consumed by the plans sent
    uint64_t last_step = 0;  // the step that last had a row of it
  };
  Phase phase = Phase::kQueued;
  // Counts admissions: tells the results of this one from those of an earlier one.
  uint32_t epoch = 0;
  Admission now;

  // ---- the Reserve under way ----
  uint64_t ticket = 0;  // 0 = none
  uint32_t asked_pages = 0;
  // Releases sent before it: more since mean that a refusal is out of date.
  uint64_t asked_at_release = 0;

  uint32_t output_tokens() const { return static_cast<uint32_t>(output.size()); }
  uint32_t known_tokens() const { return prompt_tokens + output_tokens(); }
  std::vector<TokenId> tokens() const;  // all that are known, in order
  // Positions consumed in a whole life: the last sampled token is never an input.
  uint32_t limit_positions() const { return prompt_tokens + std::max(max_tokens, 1u) - 1; }
  bool prefilling() const { return now.consumed < now.start_tokens; }
};

inline std::vector<TokenId> Sequence::tokens() const {
  std::vector<TokenId> all;
  all.reserve(known_tokens());
  all.insert(all.end(), prompt.begin(), prompt.end());
  all.insert(all.end(), output.begin(), output.end());
  return all;
}

// The order of admission and of prefill: higher priority first, then first come, first served.
inline bool goes_before(const Sequence& a, const Sequence& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.arrival < b.arrival;
}

}  // namespace runtime
