#include "runtime/stop_strings.hpp"

#include <algorithm>
#include <utility>

namespace runtime {
namespace {

std::vector<size_t> borders(const std::string& text) {
  std::vector<size_t> border(text.size(), 0);
  for (size_t i = 1; i < text.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && text[i] != text[length]) length = border[length - 1];
    border[i] = text[i] == text[length] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops, bool include) : include_(include) {
  for (auto& stop : stops) {
    if (stop.empty()) continue;
    auto fallback = borders(stop);
    patterns_.push_back({std::move(stop), std::move(fallback), 0});
  }
}

// Knuth-Morris-Pratt. A completed pattern ends the search, so progress == size never has to fall
// back.
void StopStrings::advance(Pattern& pattern, char byte) {
  while (pattern.progress > 0 && pattern.text[pattern.progress] != byte) {
    pattern.progress = pattern.fallback[pattern.progress - 1];
  }
  if (pattern.text[pattern.progress] == byte) ++pattern.progress;
}

const StopStrings::Pattern* StopStrings::complete() const {
  const Pattern* longest = nullptr;
  for (const Pattern& pattern : patterns_) {
    if (pattern.progress < pattern.text.size()) continue;
    if (longest == nullptr || pattern.text.size() > longest->text.size()) longest = &pattern;
  }
  return longest;
}

std::string StopStrings::push(std::string_view piece) {
  if (matched_) return {};
  if (patterns_.empty()) return std::string(piece);
  for (size_t i = 0; i < piece.size(); ++i) {
    held_ += piece[i];
    for (Pattern& pattern : patterns_) advance(pattern, piece[i]);
    const Pattern* match = complete();
    if (match == nullptr) continue;
    matched_ = match->text;
    if (!include_) held_.resize(held_.size() - match->text.size());
    return std::exchange(held_, {});
  }
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.progress);
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() {
  for (Pattern& pattern : patterns_) pattern.progress = 0;
  return std::exchange(held_, {});
}

}  // namespace runtime
