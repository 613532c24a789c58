// Speculation on a modelled server: how many tokens a verify step commits of a sequence, and how
// many it verifies.
//
// The scheduler plans one token of a sequence a step and knows nothing of drafts. So the time of a
// verify step is spread over the tokens that it commits: one of a block of n takes 1/n of the row's
// part in a step that verifies the whole block. Rates and lengths are those of steps that commit
// whole blocks; tokens come out one by one instead of n at a time, and a block that is cut short by
// the answer's end costs no more than its tokens.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "memory/ids.hpp"
#include "runtime/counter_random.hpp"
#include "runtime/sim/step_model.hpp"
#include "runtime/sim/trim_panel.hpp"

namespace runtime {

struct SpeculationConfig {
  uint32_t draft_tokens = 0;  // 0: none; at most kDraftTokens
  // [draft_tokens] chance that a draft is accepted when those before it were.
  std::vector<double> acceptance;
  // 0: every draft has its position's chance. Else its own, from Beta(spread * mean, spread * (1 -
  // mean)): small is bimodal.
  double spread = 0;
  // Drafts whose survival is worth less than it costs are not verified. What is worth it is what
  // was so in the step before.
  bool trim = false;
  uint64_t seed = 1;
};

class Speculation {
 public:
  // `model` prices steps with their drafts (StepOptions::drafts), and must outlive it.
  Speculation(const SpeculationConfig& config, const StepModel& model);

  // What a sequence's verify step came to. Invariant: committed <= width.
  struct Block {
    uint32_t first = 0, committed = 0;  // output tokens [first, first + committed)
    uint32_t width = 1;                 // tokens that were verified
    std::array<double, kDraftTokens> survival{};
  };
  // The block of a running sequence that decodes output token `index`: drawn when `block` is over,
  // by seed, sequence and index alone but for what trimming keeps.
  void advance(Block& block, memory::SequenceId sequence, uint32_t index);
  // All rows of a step were advanced; `context`: the positions that they read.
  void end_step(uint64_t context);

  // Tokens of a sequence and verify step so far; 0: there was none.
  double accept_length() const { return blocks_ == 0 ? 0 : committed_ / blocks_; }
  double verify_width() const { return blocks_ == 0 ? 0 : verified_ / blocks_; }

 private:
  void begin(Block& block, memory::SequenceId sequence, uint32_t index);
  double step_us(uint32_t rows, uint32_t tokens, uint64_t context);

  SpeculationConfig config_;
  const StepModel& model_;
  CounterRandom random_;
  double least_ = 0;               // survival of a draft that is worth its verification
  uint32_t rows_ = 0;              // of the step under way
  std::vector<double> survivals_;  // of all their drafts
  std::map<std::tuple<uint32_t, uint32_t, int>, double> known_us_;
  double blocks_ = 0, committed_ = 0, verified_ = 0;
};

}  // namespace runtime
