#include "kernels/cpu/kda.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kda.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/kda_rows.hpp"
#include "kernels/cpu/kda_sweep.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// The convolution window after the segment's row `row`, into `slot`. Ascending order makes it safe
// in place.
void write_window(const Head& h, size_t row, uint32_t slot) {
  const long kept = static_cast<long>(h.args.conv_width) - 1;
  for (long i = 0; i < kept; ++i) {
    const float* from = h.raw(static_cast<long>(row) + 1 - kept + i);
    float* to = h.window(slot) + static_cast<size_t>(i) * 3 * h.width;
    for (size_t part = 0; part < 3; ++part) {
      const size_t column = part * h.width + h.index * h.d;
      std::memmove(to + column, from + column, h.d * sizeof(float));
    }
  }
}

// First segment row past `row` after which the state is wanted elsewhere, at most `end`.
size_t next_stop(const Head& h, size_t row, size_t end) {
  for (const KdaArgs::Capture& capture : h.args.captures) {
    const size_t after = static_cast<size_t>(capture.row) - h.segment.row_begin + 1;
    if (capture.row >= h.segment.row_begin + row && after < end) end = after;
  }
  return end;
}

void write_captures(const Head& h, size_t row) {
  for (const KdaArgs::Capture& capture : h.args.captures) {
    if (capture.row != h.segment.row_begin + row) continue;
    std::memcpy(h.state(capture.slot), h.state(h.segment.slot), h.d * h.d * sizeof(float));
    write_window(h, row, capture.slot);
  }
}

// What the next head of a single token will wait for while its sums run, but for the state, which
// is a stream: its inputs and its part of the window.
void fetch_next_head(const Head& h) {
  const size_t row = h.segment.row_begin, column = (h.index + 1) * h.d;
  const auto fetch = [&](const float* from) KERNEL_LAMBDA {
    for (size_t i = 0; i < h.d; i += 16) __builtin_prefetch(from + column + i);
  };
  for (size_t part = 0; part < 3; ++part) {
    fetch(h.args.qkv.data + row * h.args.qkv.ld + part * h.width);
    for (size_t i = 0; i + 1 < h.args.conv_width; ++i)
      fetch(h.window(h.segment.slot) + (3 * i + part) * h.width);
  }
  fetch(h.args.decay.data + row * h.args.decay.ld);
  fetch(h.args.gate.data + row * h.args.gate.ld);
}

// The rows that a chunk's gated norm and the next chunk's inputs read.
RowsToFetch rows_after(const Head& h, size_t row) {
  const size_t batch_row = h.segment.row_begin + row, column = h.index * h.d;
  RowsToFetch rows;
  rows.add(h.args.gate, batch_row, column);
  rows.add(h.args.out, batch_row, column);
  if (row + cpu::kKdaChunk >= h.segment.row_count) return rows;
  for (size_t part = 0; part < 3; ++part)
    rows.add(h.args.qkv, batch_row + cpu::kKdaChunk, part * h.width + column);
  rows.add(h.args.decay, batch_row + cpu::kKdaChunk, column);
  return rows;
}

void run_head(const KdaArgs& args, const Segment& segment, size_t head, bool last, float* scratch) {
  const Head h(args, segment, head, scratch);
  for (size_t row = 0; row < segment.row_count;) {
    const size_t end = next_stop(h, row, std::min<size_t>(row + cpu::kKdaChunk, segment.row_count));
    prepare(h, row, end - row);
    if (segment.row_count == 1 && !last) fetch_next_head(h);
    recur(h, end - row, h.state(segment.slot), rows_after(h, row));
    write_out(h, row, end - row);
    write_captures(h, end - 1);
    row = end;
  }
  write_window(h, segment.row_count - 1, segment.slot);
}

void kda_heads_target(const KdaArgs& args, const Segment& segment, const cpu::KdaHeads& heads,
                      float* scratch) {
  for (size_t head = heads.begin; head < heads.end; ++head)
    run_head(args, segment, head, head + 1 == heads.end, scratch);
}

void kda_recurrence_target(const cpu::KdaTokens& tokens, size_t count, float* state) {
  recur(tokens, count, state, {});
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(kda_heads_target);
HWY_EXPORT(kda_recurrence_target);

void cpu::kda_heads(const KdaArgs& args, const Segment& segment, const KdaHeads& heads,
                    float* scratch) {
  HWY_DYNAMIC_DISPATCH(kda_heads_target)(args, segment, heads, scratch);
}
void cpu::kda_recurrence(const KdaTokens& tokens, size_t count, float* state) {
  HWY_DYNAMIC_DISPATCH(kda_recurrence_target)(tokens, count, state);
}
}  // namespace kernels
#endif
