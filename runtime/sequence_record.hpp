// What the worker knows of a sequence between steps, so that the scheduler can plan a step ahead of
// the results: the tokens known at its start, the last sampled token, its length, its pages, and
// what the sampler needs. Invariant: positions [0, length()) have been consumed into the working
// slot (or will be by the batch being built).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/sampler.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

class SequenceRecord {
 public:
  // `position`: where the first row of this admission begins.
  SequenceRecord(const SequenceStart& start, uint32_t position);

  void add_pages(std::span<const PageId> pages);
  // Appends the input tokens of the row and moves length() past them. VERIFYs that the row
  // continues where the last one ended.
  void consume(const PlanRow& row, std::vector<TokenId>& out);
  // Is the token after `position` one of the prompt's whose log-probability is wanted?
  bool wants_prompt_logprob(uint32_t position) const;
  void sampled(TokenId token);     // it takes position length()
  void fail() { failed_ = true; }  // non-finite logits: later rows of this sequence fail too

  void lose() { failed_ = lost_ = true; }  // a block it names has other bytes than it should
  bool failed() const { return failed_; }
  bool lost() const { return lost_; }
  uint32_t length() const { return length_; }
  SlotId slot() const { return slot_; }
  uint32_t shared() const { return shared_; }  // positions whose pages it only reads
  std::span<const PageId> pages() const { return pages_; }
  const SamplingParams& sampling() const { return sampling_; }
  const PenaltyCounts& counts() const { return counts_; }
  uint32_t output_tokens() const { return output_tokens_; }
  TokenId token_at(uint32_t position) const { return tokens_[position]; }  // known at the start

 private:
  SamplingParams sampling_;
  std::vector<TokenId> tokens_;  // known at the start: prompt, and the output before a retraction
  uint32_t prompt_tokens_;
  bool prompt_logprobs_;
  SlotId slot_;
  uint32_t shared_;
  std::vector<PageId> pages_;  // page i holds positions [i * page_tokens, (i + 1) * page_tokens)
  PenaltyCounts counts_;       // empty when no penalty asks for it
  uint32_t length_;
  uint32_t output_tokens_ = 0;
  TokenId last_token_ = 0;      // takes position last_position_
  uint32_t last_position_ = 0;  // 0: none was sampled in this admission
  bool failed_ = false, lost_ = false;
};

}  // namespace runtime
