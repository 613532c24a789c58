// How far a replay is, as one line that is written over itself.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace net {

struct Progress {
  uint64_t done = 0, total = 0;  // requests
  uint64_t open = 0, failed = 0;
  double elapsed_s = 0, tokens_per_s = 0;
};

// "[#####.....] 120/240  32 open  410 tok/s  0:42  0:41 left"
std::string progress_line(const Progress& progress);

class ProgressBar {
 public:
  explicit ProgressBar(std::ostream* out) : out_(out) {}  // nullptr: there is none
  ~ProgressBar();                                         // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const Progress& progress);

 private:
  std::ostream* out_;
  size_t shown_ = 0;  // columns
};

}  // namespace net
