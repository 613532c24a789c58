// What the model benchmark can measure, by name: `prefill_N` (a prompt of N tokens), `decode_B` (B
// sequences with a short context), `decode_B_depth_D` (with D positions of context each).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace runtime {

struct BenchPoint {
  enum class Kind : uint8_t { kPrefill, kDecode };
  Kind kind = Kind::kDecode;
  uint32_t count = 1;  // prompt tokens, or sequences of a batch
  uint32_t depth = 0;  // positions before the first decoded token; 0: a short context
  bool operator==(const BenchPoint&) const = default;
};

std::string to_string(const BenchPoint& point);
kernels::Result<BenchPoint> parse_bench_point(std::string_view name);
// A comma-separated list of names. A point with depth is judged by what it takes longer than the
// same without, which is put before it where it is missing.
kernels::Result<std::vector<BenchPoint>> parse_bench_points(std::string_view names);

// Prompts of 128 ... 8192 tokens, batches of 1 ... 32 sequences; with `deep` also one sequence at
// 8192 and 32768 positions.
std::vector<BenchPoint> default_bench_points(bool deep);

}  // namespace runtime
