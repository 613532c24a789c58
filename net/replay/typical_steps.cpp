#include "net/replay/typical_steps.hpp"

#include <bit>

namespace net {
namespace {

uint64_t mean(uint64_t sum, uint64_t steps) { return (sum + steps / 2) / steps; }

}  // namespace

void TypicalSteps::add(const runtime::StepShape& shape) {
  if (shape.prefill_tokens > 0) {
    add_to(prefill_, static_cast<uint64_t>(std::bit_width(shape.prefill_tokens)), shape);
  } else if (shape.decode_rows > 0) {
    add_to(decode_, shape.decode_rows, shape);
  }
}

void TypicalSteps::add_decode(const runtime::StepShape& first, uint64_t steps) {
  const uint64_t rows = first.decode_rows;
  Sums& sums = decode_[rows];
  sums.steps += steps;
  sums.decode_rows += steps * rows;
  sums.all.decode_tokens += steps * first.decode_tokens;
  sums.all.decode_context += steps * first.decode_context + rows * (steps * (steps - 1) / 2);
  sums.all.verify_parts += static_cast<double>(steps) * first.verify_parts;
}

void TypicalSteps::add_to(Steps& steps, uint64_t size, const runtime::StepShape& shape) {
  Sums& sums = steps[size];
  ++sums.steps;
  sums.prefill_rows += shape.prefill_rows;
  sums.decode_rows += shape.decode_rows;
  sums.all.prefill_tokens += shape.prefill_tokens;
  sums.all.prefill_longest += shape.prefill_longest;
  sums.all.prefill_context += shape.prefill_context;
  sums.all.prefill_pairs += shape.prefill_pairs;
  sums.all.decode_tokens += shape.decode_tokens;
  sums.all.decode_context += shape.decode_context;
  sums.all.verify_parts += shape.verify_parts;
}

runtime::StepShape TypicalSteps::median(const Steps& steps) {
  uint64_t total = 0, below = 0;
  for (const auto& [size, sums] : steps) total += sums.steps;
  for (const auto& [size, sums] : steps) {
    below += sums.steps;
    if (2 * below < total) continue;
    runtime::StepShape out;
    out.prefill_rows = static_cast<uint32_t>(mean(sums.prefill_rows, sums.steps));
    out.decode_rows = static_cast<uint32_t>(mean(sums.decode_rows, sums.steps));
    out.prefill_tokens = mean(sums.all.prefill_tokens, sums.steps);
    out.prefill_longest = mean(sums.all.prefill_longest, sums.steps);
    out.prefill_context = mean(sums.all.prefill_context, sums.steps);
    out.prefill_pairs = sums.all.prefill_pairs / static_cast<double>(sums.steps);
    out.decode_tokens = mean(sums.all.decode_tokens, sums.steps);
    out.decode_context = mean(sums.all.decode_context, sums.steps);
    out.verify_parts = sums.all.verify_parts / static_cast<double>(sums.steps);
    return out;
  }
  return {};
}

}  // namespace net
