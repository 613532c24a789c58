// The time of one step by what it went to, for pictures and for finding out why.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace runtime {

enum class CostClass : uint8_t {
  kProjections,  // dense products
  kExperts,      // routed experts
  kKda,          // recurrent attention
  kMla,          // latent attention
  kStreaming,    // norms, mixes, routing, copies
  kCollectives,  // between ranks
  kHandoff,      // between pipeline stages, what compute does not hide
  kDraft,        // proposing tokens, and folding what was accepted
  kFixed,        // sampler, overhead of a step
};
constexpr size_t kCostClasses = 9;
std::string_view name_of(CostClass cost);

struct StepBreakdown {
  struct Part {
    double us = 0;
    uint32_t launches = 0;
  };
  std::array<Part, kCostClasses> parts{};

  Part& operator[](CostClass cost) { return parts[static_cast<size_t>(cost)]; }
  const Part& operator[](CostClass cost) const { return parts[static_cast<size_t>(cost)]; }
  double total_us() const {
    double sum = 0;
    for (const Part& part : parts) sum += part.us;
    return sum;
  }
  uint32_t launches() const {
    uint32_t sum = 0;
    for (const Part& part : parts) sum += part.launches;
    return sum;
  }
};

}  // namespace runtime
