// A step's time is linear in what is sought (a step's fixed cost, a token's, the inverses of two
// rates, a request's) once it is known which of its two rates decides. So: assume that, solve, look
// which rates decide now, and again until nothing changes; from several beginnings, best one kept.
#include "runtime/sim/roofline_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>

namespace runtime {
namespace {

using kernels::RooflineParams;
using kernels::RooflineWork;

enum Unknown : size_t { kStep, kToken, kPerByte, kPerFlop, kRequest, kUnknowns };
using Row = std::array<double, kUnknowns>;

struct Solution {
  Row values{};
  double error = std::numeric_limits<double>::infinity();  // sum of relative squares
};

// By sample and step: products decide, not memory.
using Deciding = std::vector<std::vector<bool>>;

class Fitter {
 public:
  explicit Fitter(const std::vector<RooflineSample>& samples) : samples_(samples) {}

  Solution from(Deciding deciding) const {
    constexpr int kRounds = 100;  // in practice a handful
    Solution best;
    for (int round = 0; round < kRounds; ++round) {
      const Solution linear = solve(rows(deciding));
      const Solution now{linear.values, error_of(linear.values)};
      if (now.error < best.error) best = now;
      Deciding next = decide(now.values);
      if (next == deciding) break;
      deciding = std::move(next);
    }
    return best;
  }

  Deciding decide(const Row& at) const {
    return choose([&](const RooflineWork& work) {
      return work.flops * at[kPerFlop] > work.bytes * at[kPerByte];
    });
  }
  // Steps of more than so many tokens are products'.
  Deciding above(double tokens) const {
    return choose([&](const RooflineWork& work) { return work.tokens > tokens; });
  }

  double predicted(const Row& at, const RooflineSample& sample) const {
    double sum = sample.is_request ? at[kRequest] : 0;
    for (const RooflineWork& work : sample.steps) {
      sum += at[kStep] + work.tokens * at[kToken] +
             std::max(work.bytes * at[kPerByte], work.flops * at[kPerFlop]);
    }
    return sum;
  }

 private:
  template <class Choose>
  Deciding choose(Choose by) const {
    Deciding out;
    for (const RooflineSample& sample : samples_) {
      out.emplace_back();
      for (const RooflineWork& work : sample.steps) out.back().push_back(by(work));
    }
    return out;
  }

  double error_of(const Row& at) const {
    double sum = 0;
    for (const RooflineSample& sample : samples_) {
      const double relative = predicted(at, sample) / sample.measured_us - 1;
      sum += relative * relative;
    }
    return sum;
  }

  // What each unknown counts in each sample, over its measured time.
  std::vector<Row> rows(const Deciding& deciding) const {
    std::vector<Row> out;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const RooflineSample& sample = samples_[i];
      Row row{};
      row[kRequest] = sample.is_request ? 1 : 0;
      for (size_t s = 0; s < sample.steps.size(); ++s) {
        const RooflineWork& work = sample.steps[s];
        row[kStep] += 1;
        row[kToken] += work.tokens;
        (deciding[i][s] ? row[kPerFlop] : row[kPerByte]) +=
            deciding[i][s] ? work.flops : work.bytes;
      }
      for (double& value : row) value /= sample.measured_us;
      out.push_back(row);
    }
    return out;
  }

  static Solution solve(const std::vector<Row>& rows);
  const std::vector<RooflineSample>& samples_;
};

// The normal equations over the unknowns in `used`, each scaled to its column's length; the others
// are 0. Empty when two columns cannot be told apart.
std::optional<Row> least_squares(const std::vector<Row>& rows, uint32_t used) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < kUnknowns; ++c)
    if ((used >> c & 1) != 0) columns.push_back(c);
  const size_t n = columns.size();
  Row scale{};
  for (const size_t c : columns) {
    for (const Row& row : rows) scale[c] += row[c] * row[c];
    scale[c] = std::sqrt(scale[c]);
    if (scale[c] == 0) return std::nullopt;
  }
  std::array<std::array<double, kUnknowns + 1>, kUnknowns> matrix{};
  for (size_t i = 0; i < n; ++i) {
    for (const Row& row : rows) {
      const double left = row[columns[i]] / scale[columns[i]];
      for (size_t j = 0; j < n; ++j) matrix[i][j] += left * row[columns[j]] / scale[columns[j]];
      matrix[i][n] += left;  // every relative time is 1
    }
  }
  constexpr double kSingular = 1e-10;
  for (size_t i = 0; i < n; ++i) {  // symmetric and positive: the diagonal is the pivot
    if (matrix[i][i] < kSingular) return std::nullopt;
    for (size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = matrix[k][i] / matrix[i][i];
      for (size_t j = i; j <= n; ++j) matrix[k][j] -= factor * matrix[i][j];
    }
  }
  Row out{};
  for (size_t i = 0; i < n; ++i) out[columns[i]] = matrix[i][n] / matrix[i][i] / scale[columns[i]];
  return out;
}

// The best of all subsets of unknowns whose solution has nothing negative: exact, and there are 31.
Solution Fitter::solve(const std::vector<Row>& rows) {
  Solution best;
  for (uint32_t used = 1; used < (1u << kUnknowns); ++used) {
    const std::optional<Row> values = least_squares(rows, used);
    if (!values) continue;
    if (std::any_of(values->begin(), values->end(), [](double value) { return value < 0; }))
      continue;
    double error = 0;
    for (const Row& row : rows) {
      double sum = -1;
      for (size_t c = 0; c < kUnknowns; ++c) sum += row[c] * (*values)[c];
      error += sum * sum;
    }
    if (error < best.error) best = {*values, error};
  }
  return best;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A rate of which nothing was seen is so high that it never decides.
double rate(double per_unit) { return per_unit > 0 ? 1 / per_unit : 1e12; }

}  // namespace

RooflineFit fit_roofline(const std::vector<RooflineSample>& samples, const RooflineParams& start) {
  if (samples.size() < 4) {
    throw std::invalid_argument("calibration: " + std::to_string(samples.size()) +
                                " samples are too few to fit five numbers");
  }
  const Fitter fitter(samples);
  Solution best =
      fitter.from(fitter.decide({0, 0, 1 / start.bytes_per_us, 1 / start.flops_per_us, 0}));
  for (const double tokens : {0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 1e9}) {
    const Solution other = fitter.from(fitter.above(tokens));
    if (other.error < best.error) best = other;
  }
  const double layers = samples.front().steps.front().layers;
  RooflineFit fit;
  fit.params.bytes_per_us = rate(best.values[kPerByte]);
  fit.params.flops_per_us = rate(best.values[kPerFlop]);
  fit.params.token_us = best.values[kToken];
  fit.params.step_us = std::min(start.step_us, best.values[kStep]);
  fit.params.layer_us = (best.values[kStep] - fit.params.step_us) / layers;
  fit.request_us = best.values[kRequest];
  std::vector<double> errors;
  for (const RooflineSample& sample : samples) {
    fit.predicted_us.push_back(fitter.predicted(best.values, sample));
    errors.push_back(std::abs(fit.predicted_us.back() / sample.measured_us - 1));
  }
  fit.median_error = median(errors);
  fit.worst_error = *std::max_element(errors.begin(), errors.end());
  return fit;
}

}  // namespace runtime
