#include "net/trace/distribution.hpp"

#include <algorithm>
#include <bit>

namespace net {

Distribution distribution_of(std::vector<uint64_t> values) {
  Distribution result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto at_most = [&](size_t percent) {
    return values[(values.size() * percent + 99) / 100 - 1];  // nearest rank
  };
  result.count = values.size();
  result.p50 = at_most(50);
  result.p90 = at_most(90);
  result.p99 = at_most(99);
  result.max = values.back();
  result.buckets.resize(static_cast<size_t>(std::bit_width(result.max)) + 1);
  for (const uint64_t value : values) {
    result.total += value;
    ++result.buckets[static_cast<size_t>(std::bit_width(value))];
  }
  return result;
}

}  // namespace net
