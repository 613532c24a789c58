// How long the parts of a network take: laps of one thread's processor time. A null timer costs a
// branch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace runtime {

enum class NetworkPart : uint8_t { kKda, kMla, kDense, kMixture, kResiduals, kHead };
inline constexpr size_t kNetworkParts = 6;
inline constexpr std::array<const char*, kNetworkParts> kNetworkPartNames = {
    "KDA", "MLA", "dense", "mixture", "residuals", "head"};

class PartTimer {
 public:
  void start() { last_ = now(); }
  // The time since the last call belongs to `part`.
  void lap(NetworkPart part) {
    const double at = now();
    seconds_[static_cast<size_t>(part)] += at - last_;
    last_ = at;
  }
  const std::array<double, kNetworkParts>& seconds() const { return seconds_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  std::array<double, kNetworkParts> seconds_{};
  double last_ = 0;
};

inline void lap(PartTimer* timer, NetworkPart part) {
  if (timer != nullptr) timer->lap(part);
}

}  // namespace runtime
