// Counts of something over many requests: percentiles, and a histogram by powers of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace net {

struct Distribution {
  uint64_t count = 0, total = 0;
  uint64_t p50 = 0, p90 = 0, p99 = 0, max = 0;  // the smallest value that so many do not exceed
  // How many values are 0, 1, 2-3, 4-7 ...: bucket i > 0 begins with 2^(i-1). Ends with max's.
  std::vector<uint64_t> buckets;

  double mean() const {
    return count == 0 ? 0 : static_cast<double>(total) / static_cast<double>(count);
  }
};

Distribution distribution_of(std::vector<uint64_t> values);

// The least value of a bucket.
constexpr uint64_t bucket_begin(size_t bucket) {
  return bucket == 0 ? 0 : uint64_t{1} << (bucket - 1);
}

}  // namespace net
