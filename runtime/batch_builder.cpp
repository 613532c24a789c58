#include "runtime/batch_builder.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

void BatchBuilder::clear() {
  tokens_.clear();
  segments_.clear();
  pages_.clear();
  logit_rows_.clear();
  captures_.clear();
  wanted_.clear();
}

void BatchBuilder::add(const PlanRow& row, SequenceRecord& record, const BlockTable& slots,
                       const BlockTable& pages) {
  const uint32_t row_begin = static_cast<uint32_t>(tokens_.size());
  record.consume(row, tokens_);
  const SlotId slot = record.slot();
  segments_.push_back({row_begin, row.count, row.position,
                       slots.physical(slot.index, slot.generation),
                       static_cast<uint32_t>(pages_.size()), record.shared()});
  const uint64_t page_count = memory::pages_for(record.length(), page_tokens_);
  VERIFY(page_count <= record.pages().size());
  for (const PageId page : record.pages().first(page_count)) {
    pages_.push_back(pages.physical(page.index, page.generation));
  }

  for (const Snapshot& snapshot : row.snapshots) {
    VERIFY(snapshot.position > row.position && snapshot.position <= record.length());
    captures_.push_back({row_begin + (snapshot.position - row.position) - 1,
                         slots.physical(snapshot.slot.index, snapshot.slot.generation)});
  }

  Wanted wanted{.logits_begin = static_cast<uint32_t>(logit_rows_.size())};
  for (uint32_t i = 0; i < row.count && record.wants_prompt_logprob(row.position + i); ++i) {
    logit_rows_.push_back(row_begin + i);
    ++wanted.prompt_count;
  }
  // The token after the last prompt position is never a prompt token, so the sampled row is not
  // among those above.
  wanted.sample = row.sample;
  if (row.sample) {
    VERIFY(wanted.prompt_count < row.count);
    logit_rows_.push_back(row_begin + row.count - 1);
  }
  wanted.count = static_cast<uint32_t>(logit_rows_.size()) - wanted.logits_begin;
  wanted_.push_back(wanted);
}

ForwardBatch BatchBuilder::batch() const {
  return {
      tokens_, {segments_, pages_, static_cast<uint32_t>(tokens_.size())}, logit_rows_, captures_};
}

}  // namespace runtime
