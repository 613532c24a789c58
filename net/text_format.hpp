// Text by a pattern of printf, of any length.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

namespace net {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int size = std::snprintf(nullptr, 0, pattern, args...);
  std::string text(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, args...);
  text.pop_back();
  return text;
}

}  // namespace net
