// Fits a roofline device's five numbers to measured times: the sum of relative errors' squares is
// least, and none is negative.
#pragma once

#include <string>
#include <vector>

#include "kernels/sim/roofline_cost.hpp"

namespace runtime {

struct RooflineSample {
  std::string name;
  std::vector<kernels::RooflineWork> steps;  // one after another
  bool is_request = false;                   // what is spent on a request beside its steps is in it
  double measured_us = 0;
};

struct RooflineFit {
  kernels::RooflineParams params;
  double request_us = 0;                     // of a request: transport, tokens to text
  std::vector<double> predicted_us;          // by sample
  double median_error = 0, worst_error = 0;  // relative, without sign
};

// `start`: where the search begins. What one model cannot tell apart stays as it is there: of what
// a step costs whatever it holds, start.step_us, and its layers share the rest. Throws
// std::invalid_argument for fewer than four samples.
RooflineFit fit_roofline(const std::vector<RooflineSample>& samples,
                         const kernels::RooflineParams& start);

}  // namespace runtime
