// How many distinct experts a batch of tokens chooses, on average, when the experts' popularity
// falls off as a power of their rank (Zipf).
#pragma once

#include <unordered_map>
#include <vector>

namespace runtime {

class ExpertRouting {
 public:
  // Expert e (from 1) is among a token's `top_k` with chance proportional to e^-skew, at most 1;
  // the chances add up to top_k. skew 0: all alike.
  ExpertRouting(double experts, double top_k, double skew);
  // sum over e of 1 - (1 - p_e)^tokens. Tokens may be a fraction: a draft's token counts for as
  // much as it brings new experts.
  double distinct(double tokens) const;

 private:
  std::vector<double> log_absent_;  // log(1 - p_e)
  double always_ = 0;               // experts that every token chooses
  mutable std::unordered_map<double, double> known_;
};

}  // namespace runtime
