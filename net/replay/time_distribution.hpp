// Times and their quantiles. A value is counted in a bucket that is at most 1/128 of it wide, so a
// quantile is within 0.4 % of the exact one and memory does not grow with the count.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace net {

class TimeDistribution {
 public:
  void add(uint64_t ns, uint64_t times = 1) {
    if (times == 0) return;
    buckets_[bucket(ns)] += times;
    count_ += times;
    sum_ += ns * times;
    if (ns > max_) max_ = ns;
  }
  uint64_t count() const { return count_; }
  double mean_ns() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  uint64_t max_ns() const { return max_; }
  // The value that a share `q` of all lie at or below (nearest rank); 0 when there is none.
  uint64_t quantile_ns(double q) const {
    if (count_ == 0) return 0;
    uint64_t rank = static_cast<uint64_t>(q * static_cast<double>(count_));
    if (static_cast<double>(rank) < q * static_cast<double>(count_)) ++rank;
    uint64_t below = 0;
    for (const auto& [index, count] : buckets_) {
      below += count;
      if (below >= rank) return middle(index);
    }
    return max_;
  }
  // Values and the shares that lie at or below them, ascending.
  std::vector<std::pair<uint64_t, double>> curve() const {
    std::vector<std::pair<uint64_t, double>> out;
    uint64_t below = 0;
    for (const auto& [index, count] : buckets_) {
      below += count;
      out.emplace_back(middle(index), static_cast<double>(below) / static_cast<double>(count_));
    }
    return out;
  }

 private:
  static constexpr unsigned kBits = 7;  // of a value that are kept
  // Exact below 2^(kBits + 1); beyond, an exponent and the kBits after the leading one.
  static uint32_t bucket(uint64_t value) {
    if (value < (2u << kBits)) return static_cast<uint32_t>(value);
    const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 1 - kBits;
    return (exponent << (kBits + 1)) + static_cast<uint32_t>(value >> exponent);
  }
  static uint64_t middle(uint32_t index) {
    if (index < (2u << kBits)) return index;
    const unsigned exponent = (index >> kBits >> 1);
    const uint64_t low = index & ((2u << kBits) - 1);
    return (low << exponent) + ((uint64_t{1} << exponent) >> 1);
  }

  std::map<uint32_t, uint64_t> buckets_;
  uint64_t count_ = 0, max_ = 0;
  uint64_t sum_ = 0;  // exact, in whatever order times come: 2^64 ns are 584 years
};

}  // namespace net
