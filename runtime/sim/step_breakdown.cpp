#include "runtime/sim/step_breakdown.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

std::string_view name_of(CostClass cost) {
  switch (cost) {
    case CostClass::kProjections:
      return "projections";
    case CostClass::kExperts:
      return "experts";
    case CostClass::kKda:
      return "kda";
    case CostClass::kMla:
      return "mla";
    case CostClass::kStreaming:
      return "streaming";
    case CostClass::kCollectives:
      return "collectives";
    case CostClass::kHandoff:
      return "handoff";
    case CostClass::kFixed:
      return "fixed";
  }
  VERIFY(false);
}

void StepBreakdown::add(const StepBreakdown& other, uint32_t times) {
  for (size_t i = 0; i < kCostClasses; ++i) {
    parts[i].us += times * other.parts[i].us;
    parts[i].launches += times * other.parts[i].launches;
  }
}

void StepBreakdown::scale(double factor) {
  for (Part& part : parts) part.us *= factor;
}

double StepBreakdown::total_us() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.us;
  return sum;
}

uint32_t StepBreakdown::launches() const {
  uint32_t sum = 0;
  for (const Part& part : parts) sum += part.launches;
  return sum;
}

}  // namespace runtime
