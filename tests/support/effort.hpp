// How many of many like cases a test takes.
#pragma once

#include <algorithm>
#include <cstddef>

namespace support {

// Sanitizers make arithmetic ten to fifty times slower and look at accesses, not at values: under
// them a test takes the first eighth of its like cases, and the smaller ones.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr size_t effort(size_t cases) {
  return kSanitized ? std::max<size_t>(1, cases / 8) : cases;
}

}  // namespace support
