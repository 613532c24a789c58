#include "runtime/sequence_record.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

bool counts_output(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

}  // namespace

SequenceRecord::SequenceRecord(const SequenceStart& start, uint32_t position)
    : sampling_(start.sampling),
      tokens_(start.tokens),
      prompt_tokens_(start.prompt_tokens),
      prompt_logprobs_(start.prompt_logprobs),
      slot_(start.slot),
      shared_(start.shared),
      length_(position) {
  VERIFY(prompt_tokens_ <= tokens_.size());
  VERIFY(position < tokens_.size());
  output_tokens_ = static_cast<uint32_t>(tokens_.size()) - prompt_tokens_;
  if (sampling_.repetition_penalty != 1.0f) {
    for (uint32_t i = 0; i < prompt_tokens_; ++i) counts_.add_prompt(tokens_[i]);
  }
  if (counts_output(sampling_)) {
    for (size_t i = prompt_tokens_; i < tokens_.size(); ++i) counts_.add_output(tokens_[i]);
  }
}

void SequenceRecord::add_pages(std::span<const PageId> pages) {
  pages_.insert(pages_.end(), pages.begin(), pages.end());
}

void SequenceRecord::consume(const PlanRow& row, std::vector<TokenId>& out) {
  VERIFY(row.count > 0);
  VERIFY(row.position == length_);
  const size_t end = size_t{row.position} + row.count;
  if (end <= tokens_.size()) {
    out.insert(out.end(), tokens_.begin() + row.position,
               tokens_.begin() + static_cast<ptrdiff_t>(end));
  } else {
    VERIFY(row.count == 1);
    VERIFY(failed_ || row.position ==
                          last_position_);  // a failed row left no token: its successors run on any
    out.push_back(last_token_);
  }
  VERIFY(!row.sample || end >= tokens_.size());  // else the sampled token's place is taken
  length_ = static_cast<uint32_t>(end);
}

bool SequenceRecord::wants_prompt_logprob(uint32_t position) const {
  return prompt_logprobs_ && position + 1 < prompt_tokens_;
}

void SequenceRecord::sampled(TokenId token) {
  last_token_ = token;
  last_position_ = length_;
  ++output_tokens_;
  if (counts_output(sampling_)) counts_.add_output(token);
}

}  // namespace runtime
