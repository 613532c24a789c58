#include "runtime/sim/expert_routing.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "runtime/log_exp.hpp"

namespace runtime {

ExpertRouting::ExpertRouting(double experts, double top_k, double skew) {
  VERIFY(experts >= 0 && top_k <= experts);
  std::vector<double> weights;
  double sum = 0;
  for (double e = 1; e <= experts; ++e) {
    weights.push_back(exp_double(-skew * log_double(e)));
    sum += weights.back();
  }
  for (const double weight : weights) {
    const double chance = top_k * weight / sum;
    if (chance >= 1) {
      always_ += 1;
    } else {
      log_absent_.push_back(log_double(1 - chance));
    }
  }
}

double ExpertRouting::distinct(double tokens) const {
  if (tokens <= 0) return 0;
  const auto known = known_.find(tokens);
  if (known != known_.end()) return known->second;
  double sum = always_;
  for (const double log_absent : log_absent_) sum += 1 - exp_double(tokens * log_absent);
  known_.emplace(tokens, sum);
  return sum;
}

}  // namespace runtime
