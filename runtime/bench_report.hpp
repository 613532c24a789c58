// Figures of a model benchmark as text.
#pragma once

#include <string>

#include "runtime/model_bench.hpp"

namespace runtime {

std::string bench_table_head();
std::string bench_table_row(const BenchFigure& figure);
// One JSON object: tokens per second by the points' names, and what they were measured on.
std::string bench_json(const BenchReport& report);

}  // namespace runtime
