// What a draft model is sure of, drawn: shared by the trimming panel and a modelled server that
// speculates.
#pragma once

#include "runtime/log_exp.hpp"

namespace runtime {

// Beta(a, b) from uniform numbers of [0, 1), by Johnk: of u^(1/a) and v^(1/b) whose sum is at most
// 1, the first's share. `uniform()` is called until they are found.
template <class Uniform>
double draw_beta(double a, double b, const Uniform& uniform) {
  for (;;) {
    const double u = uniform(), v = uniform();
    if (u == 0 || v == 0) continue;
    const double x = exp_double(log_double(u) / a), y = exp_double(log_double(v) / b);
    if (x + y <= 1 && x + y > 0) return x / (x + y);
  }
}

}  // namespace runtime
