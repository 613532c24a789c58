#include "runtime/train/loss_curve.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "runtime/output_files.hpp"
#include "runtime/plot/chart.hpp"

namespace runtime {

namespace {

constexpr const char* kHeader = "step,tokens,loss,grad_norm,rate,skipped";

std::string line(const LossPoint& p) {
  char text[160];
  std::snprintf(text, sizeof text, "%" PRIu64 ",%" PRIu64 ",%.9g,%.6g,%.6g,%d", p.step, p.tokens,
                p.loss, p.grad_norm, p.rate, p.skipped ? 1 : 0);
  return text;
}

}  // namespace

LossCurve::LossCurve(std::string csv_path, uint64_t steps) : csv_path_(std::move(csv_path)) {
  std::ifstream in(csv_path_);
  std::string row;
  std::getline(in, row);
  while (steps != 0 && std::getline(in, row)) {
    LossPoint p;
    int skipped = 0;
    if (std::sscanf(row.c_str(), "%" SCNu64 ",%" SCNu64 ",%lf,%lf,%lf,%d", &p.step, &p.tokens,
                    &p.loss, &p.grad_norm, &p.rate, &skipped) != 6) {
      throw std::runtime_error(csv_path_ + ": \"" + row + "\" is not a line of " + kHeader);
    }
    p.skipped = skipped != 0;
    if (p.step <= steps) points_.push_back(p);
  }
  in.close();
  write_csv();
}

void LossCurve::write_csv() const {
  std::ofstream out(csv_path_, std::ios::trunc);
  out << kHeader << "\n";
  for (const LossPoint& point : points_) out << line(point) << "\n";
  out.close();
  if (!out) throw std::runtime_error(csv_path_ + ": cannot be written");
}

void LossCurve::add(const LossPoint& point) {
  points_.push_back(point);
  std::ofstream out(csv_path_, std::ios::app);
  out << line(point) << "\n";
  out.close();
  if (!out) throw std::runtime_error(csv_path_ + ": cannot be written");
}

void LossCurve::write_svg(const std::string& path) const {
  const size_t window = std::max<size_t>(1, points_.size() / 100);
  Series training{"training", SeriesKind::kLine, {}};
  double sum = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    sum += points_[i].loss;
    if (i >= window) sum -= points_[i - window].loss;
    training.marks.push_back(Mark::at(static_cast<double>(points_[i].tokens),
                                      sum / static_cast<double>(std::min(i + 1, window))));
  }
  Series held_out{"held out", SeriesKind::kPoints, {}};
  for (const HeldOutPoint& point : held_out_)
    held_out.marks.push_back(Mark::at(static_cast<double>(point.tokens), point.loss));
  Axis tokens{"tokens seen"};
  tokens.low = 0;
  Chart chart("Loss of the training run", tokens, {"loss (nats per token)"});
  chart.add(std::move(training));
  chart.add(std::move(held_out));
  write_file(path, chart.svg());
}

}  // namespace runtime
