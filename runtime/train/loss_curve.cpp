#include "runtime/train/loss_curve.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace runtime {

namespace {

constexpr const char* kHeader = "step,tokens,loss,grad_norm,rate,skipped";

std::string line(const LossPoint& p) {
  char text[160];
  std::snprintf(text, sizeof text, "%" PRIu64 ",%" PRIu64 ",%.9g,%.6g,%.6g,%d", p.step, p.tokens,
                p.loss, p.grad_norm, p.rate, p.skipped ? 1 : 0);
  return text;
}

// Picture coordinates of (tokens, loss).
struct Axes {
  double most_tokens, low, high;
  static constexpr double kLeft = 70, kTop = 20, kWidth = 620, kHeight = 300;
  double x(double tokens) const { return kLeft + kWidth * tokens / most_tokens; }
  double y(double loss) const {
    return kTop + kHeight * (high - std::clamp(loss, low, high)) / (high - low);
  }
};

void draw_axes(const Axes& axes, std::ostream& out) {
  out << "<rect x=\"" << Axes::kLeft << "\" y=\"" << Axes::kTop << "\" width=\"" << Axes::kWidth
      << "\" height=\"" << Axes::kHeight << "\" fill=\"none\" stroke=\"#888\"/>\n";
  constexpr int kTicks = 5;
  char text[32];
  for (int i = 0; i <= kTicks; ++i) {
    const double tokens = axes.most_tokens * i / kTicks;
    const double loss = axes.low + (axes.high - axes.low) * i / kTicks;
    std::snprintf(text, sizeof text, "%.2f", tokens / 1e6);
    out << "<text x=\"" << axes.x(tokens) << "\" y=\"" << Axes::kTop + Axes::kHeight + 18
        << "\" text-anchor=\"middle\">" << text << "</text>\n";
    std::snprintf(text, sizeof text, "%.2f", loss);
    out << "<text x=\"" << Axes::kLeft - 8 << "\" y=\"" << axes.y(loss) + 4
        << "\" text-anchor=\"end\">" << text << "</text>\n<line x1=\"" << Axes::kLeft << "\" x2=\""
        << Axes::kLeft + Axes::kWidth << "\" y1=\"" << axes.y(loss) << "\" y2=\"" << axes.y(loss)
        << "\" stroke=\"#ddd\"/>\n";
  }
  out << "<text x=\"" << Axes::kLeft + Axes::kWidth / 2 << "\" y=\"360\" text-anchor=\"middle\">"
      << "tokens seen (millions)</text>\n<text x=\"18\" y=\"170\" text-anchor=\"middle\" "
      << "transform=\"rotate(-90 18 170)\">loss (nats per token)</text>\n";
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
  std::vector<std::pair<double, double>> smooth;
  double sum = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    sum += points_[i].loss;
    if (i >= window) sum -= points_[i - window].loss;
    smooth.emplace_back(points_[i].tokens, sum / static_cast<double>(std::min(i + 1, window)));
  }
  Axes axes{1, 0, 1};
  if (!smooth.empty()) {
    axes.most_tokens = std::max(1.0, smooth.back().first);
    axes.low = axes.high = smooth.back().second;
    for (const auto& [tokens, loss] : smooth) {
      axes.low = std::min(axes.low, loss);
      axes.high = std::max(axes.high, loss);
    }
    for (const HeldOutPoint& point : held_out_) axes.low = std::min(axes.low, point.loss);
    axes.low = std::floor(axes.low * 2) / 2;
    axes.high = std::max(axes.low + 0.5, std::ceil(axes.high * 2) / 2);
  }
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"380\" font-family=\""
      << "sans-serif\" font-size=\"12\">\n<rect width=\"720\" height=\"380\" fill=\"white\"/>\n";
  draw_axes(axes, out);
  out << "<polyline fill=\"none\" stroke=\"#1f4e9c\" stroke-width=\"1.5\" points=\"";
  for (const auto& [tokens, loss] : smooth) out << axes.x(tokens) << ',' << axes.y(loss) << ' ';
  out << "\"/>\n";
  for (const HeldOutPoint& point : held_out_) {
    out << "<rect x=\"" << axes.x(static_cast<double>(point.tokens)) - 3 << "\" y=\""
        << axes.y(point.loss) - 3
        << "\" width=\"6\" height=\"6\" fill=\"none\" stroke=\"#b03000\" stroke-width=\"1.5\"/>\n";
  }
  out << "<text x=\"680\" y=\"40\" text-anchor=\"end\">line: training, squares: held out</text>\n"
      << "</svg>\n";
  std::ofstream file(path, std::ios::trunc);
  file << out.str();
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace runtime
