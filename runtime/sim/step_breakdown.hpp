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
  kFixed,        // sampling, overheads of a step
};
constexpr size_t kCostClasses = 8;
std::string_view name_of(CostClass cost);

struct StepBreakdown {
  struct Part {
    double us = 0;
    uint32_t launches = 0;  // kernels, hidden ones too
    bool operator==(const Part&) const = default;
  };
  std::array<Part, kCostClasses> parts{};

  Part& operator[](CostClass cost) { return parts[static_cast<size_t>(cost)]; }
  const Part& operator[](CostClass cost) const { return parts[static_cast<size_t>(cost)]; }
  void add(const StepBreakdown& other, uint32_t times = 1);
  void scale(double factor);  // times alone
  double total_us() const;
  uint32_t launches() const;
  bool operator==(const StepBreakdown&) const = default;
};

}  // namespace runtime
