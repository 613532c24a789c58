// The loss of a training run, step by step, as CSV and as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace runtime {

struct LossPoint {
  uint64_t step = 0, tokens = 0;  // tokens: seen up to and with this step
  double loss = 0, grad_norm = 0, rate = 0;
  bool skipped = false;
};
struct HeldOutPoint {
  uint64_t tokens = 0;
  double loss = 0;
};

class LossCurve {
 public:
  // Appends to FILE.csv from then on; points read from an earlier file past `steps` are dropped, so
  // that a resumed run continues its curve. Throws std::runtime_error naming the file.
  LossCurve(std::string csv_path, uint64_t steps);

  void add(const LossPoint& point);
  void add(const HeldOutPoint& point) { held_out_.push_back(point); }
  // Loss against tokens, smoothed over 1 % of the steps, with the held-out points. A file of its
  // own, readable without colour.
  void write_svg(const std::string& path) const;

 private:
  void write_csv() const;

  std::string csv_path_;
  std::vector<LossPoint> points_;
  std::vector<HeldOutPoint> held_out_;
};

}  // namespace runtime
