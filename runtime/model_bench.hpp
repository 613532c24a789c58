// How fast a model runs, and how near to what the machine allows: prefill and decode through the
// engine, with the plans of the server and greedy sampling, without scheduler, actors or HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/ceilings.hpp"
#include "runtime/bench_point.hpp"
#include "runtime/engine_config.hpp"

namespace runtime {

struct BenchOptions {
  std::vector<BenchPoint> points;  // a point with depth needs the same without it before it
  uint32_t repeat = 0;  // passes of each point, the best counts; 0: for about six seconds
};

struct BenchFigure {
  BenchPoint point;
  double tokens_per_s = 0;
  // What the machine would allow: its rates, measured between the passes of this point, against
  // what the shapes need at least (runtime/model_costs.hpp).
  kernels::CeilingRates rates;
  enum class Limit : uint8_t { kBytes, kFlops } limit = Limit::kBytes;  // the one that binds
  // Reached part of it. With a depth: of the attention alone, whose time is what the step takes
  // longer than that of the point without depth.
  double fraction = 0;
  double experts = 0;  // decode: distinct ones of a step, summed over the layers
};

struct BenchReport {
  std::string model;   // its directory
  std::string target;  // SIMD target
  unsigned threads = 0;
  std::vector<BenchFigure> figures;  // in the order of the points
};

// Throws std::runtime_error naming the file or setting that is wrong. `on_figure` hears each figure
// when it is there.
BenchReport bench_model(const EngineConfig& config, const BenchOptions& options,
                        const std::function<void(const BenchFigure&)>& on_figure);

}  // namespace runtime
