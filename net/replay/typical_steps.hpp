// The steps that a replay was made of, few enough to be drawn: one of running sequences alone, as
// large as the median, and one that computes prompts.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/sim/step_shape.hpp"

namespace net {

class TypicalSteps {
 public:
  void add(const runtime::StepShape& shape);
  // So many of running sequences alone, each the next of the one before.
  void add_decode(const runtime::StepShape& first, uint64_t steps);

  // The mean of the steps that are like the median one; empty: there was none.
  runtime::StepShape decode() const { return median(decode_); }    // by rows
  runtime::StepShape prefill() const { return median(prefill_); }  // by powers of two of tokens

 private:
  struct Sums {
    uint64_t steps = 0;
    uint64_t prefill_rows = 0, decode_rows = 0;  // a shape's own counts are too narrow for sums
    runtime::StepShape all;                      // of the other fields
  };
  using Steps = std::map<uint64_t, Sums>;  // by size
  static void add_to(Steps& steps, uint64_t size, const runtime::StepShape& shape);
  static runtime::StepShape median(const Steps& steps);

  Steps decode_, prefill_;
};

}  // namespace net
