// Turns the rows of a Forward into the flat arrays a model takes: tokens, segments, physical pages,
// rows whose logits are wanted, states to save on the way. Invariant: a segment per added row, in
// plan order.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/block_table.hpp"
#include "runtime/model.hpp"
#include "runtime/sequence_record.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

class BatchBuilder {
 public:
  explicit BatchBuilder(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  void clear();
  void add(const PlanRow& row, SequenceRecord& record, const BlockTable& slots,
           const BlockTable& pages);
  void skip() { wanted_.push_back({}); }  // a row that is not computed
  ForwardBatch batch() const;  // valid until the next clear or add

  // What add() chose for the i-th row, as indices into batch().logit_rows.
  struct Wanted {
    uint32_t logits_begin = 0;
    uint32_t prompt_count = 0;  // first these, for positions row.position ... : log-probabilities
                                // of the prompt tokens after them
    bool sample = false;        // then the last input token's
    uint32_t count = 0;         // logit rows in all
  };
  const Wanted& wanted(size_t row) const { return wanted_[row]; }

 private:
  uint32_t page_tokens_;
  std::vector<TokenId> tokens_;
  std::vector<kernels::Segment> segments_;
  std::vector<uint32_t> pages_;
  std::vector<uint32_t> logit_rows_;
  std::vector<kernels::KdaArgs::Capture> captures_;
  std::vector<Wanted> wanted_;
};

}  // namespace runtime
