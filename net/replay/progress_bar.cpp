#include "net/replay/progress_bar.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace net {
namespace {

constexpr uint64_t kBarColumns = 24;

std::string clock_text(double seconds) {
  const auto all = static_cast<uint64_t>(std::llround(std::max(seconds, 0.0)));
  char text[48];
  if (all < 3600) {
    std::snprintf(text, sizeof text, "%u:%02u", static_cast<unsigned>(all / 60),
                  static_cast<unsigned>(all % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu:%02u:%02u", static_cast<unsigned long long>(all / 3600),
                  static_cast<unsigned>(all / 60 % 60), static_cast<unsigned>(all % 60));
  }
  return text;
}

}  // namespace

std::string progress_line(const Progress& now) {
  const uint64_t done = std::min(now.done, now.total);
  const uint64_t full = now.total == 0 ? 0 : done * kBarColumns / now.total;
  std::string line = "[";
  line.append(full, '#').append(kBarColumns - full, '.') += "] ";
  line += std::to_string(now.done) + "/" + std::to_string(now.total) + "  " +
          std::to_string(now.open) + " open";
  if (now.failed > 0) line += "  " + std::to_string(now.failed) + " failed";
  char rate[48];
  std::snprintf(rate, sizeof rate, "  %.4g tok/s  ", now.tokens_per_s);
  line += rate + clock_text(now.elapsed_s);
  if (now.done > 0 && now.done < now.total) {
    const auto left = static_cast<double>(now.total - now.done);
    line += "  " + clock_text(now.elapsed_s * left / static_cast<double>(now.done)) + " left";
  }
  return line;
}

ProgressBar::~ProgressBar() {
  if (out_ != nullptr && shown_ > 0)
    *out_ << "\r" << std::string(shown_, ' ') << "\r" << std::flush;
}

void ProgressBar::show(const Progress& progress) {
  if (out_ == nullptr) return;
  const std::string line = progress_line(progress);
  const size_t fill = shown_ > line.size() ? shown_ - line.size() : 0;
  *out_ << "\r" << line << std::string(fill, ' ') << std::flush;
  shown_ = line.size();
}

}  // namespace net
