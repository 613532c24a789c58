// What one step computes, as the sums its cost depends on: O(1) memory whatever the batch, so that
// a virtual clock may price millions of steps. Rows are added one at a time, in any order.
#pragma once

#include <algorithm>
#include <cstdint>

namespace runtime {

struct StepShape {
  // Rows of prompts: tokens [position, position + count) of a sequence each.
  uint32_t prefill_rows = 0;
  uint64_t prefill_tokens = 0;
  uint64_t prefill_longest = 0;  // tokens of the longest row: a recurrence walks them in order
  uint64_t prefill_context = 0;  // positions cached before these rows, summed
  double prefill_pairs = 0;      // (token, earlier position or itself), summed: attention's work
  // Rows of running sequences: `width` tokens each, 1 without speculation, drafts + 1 when it
  // verifies.
  uint32_t decode_rows = 0;
  uint64_t decode_tokens = 0;
  uint64_t decode_context = 0;  // cached positions that these rows read, summed
  // Of a step of these rows, how much each stands for, summed: 1 a row, but 1/n of one whose verify
  // step commits n tokens while a step here is one.
  double verify_parts = 0;

  void add_prefill(uint64_t position, uint64_t count) {
    const auto tokens = static_cast<double>(count);
    ++prefill_rows;
    prefill_tokens += count;
    prefill_longest = std::max(prefill_longest, count);
    prefill_context += position;
    prefill_pairs += tokens * static_cast<double>(position) + tokens * tokens / 2;
  }
  // `position`: of its first input token, which is also the number of positions cached before it.
  void add_decode(uint64_t position, uint32_t width = 1, double part = 1) {
    ++decode_rows;
    verify_parts += part;
    decode_tokens += width;
    decode_context += position + width;
  }
  // The next step of the same rows, all of width 1: each reads one position more.
  void advance_decode() { decode_context += decode_rows; }

  uint64_t tokens() const { return prefill_tokens + decode_tokens; }
  bool empty() const { return prefill_rows == 0 && decode_rows == 0; }
  bool operator==(const StepShape&) const = default;
};

}  // namespace runtime
