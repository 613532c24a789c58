#include "runtime/model_bench.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "kernels/base/steady_clock.hpp"
#include "kernels/device.hpp"
#include "kernels/forwarding_ops.hpp"
#include "kernels/traced_ops.hpp"
#include "runtime/bench_engine.hpp"
#include "runtime/model_config.hpp"
#include "runtime/model_costs.hpp"
#include "runtime/weights.hpp"

namespace runtime {
namespace {

constexpr uint32_t kPromptTokens = 16;    // context of a decode point without depth
constexpr uint32_t kMaxSteps = 64;        // decode steps of one pass
constexpr double kPassSeconds = 0.06;     // so long is a decode pass, where its steps allow: a
                                          // short one is less likely to be disturbed
constexpr double kCeilingSeconds = 0.06;  // at most, of a pass that measures a ceiling
constexpr double kCeilingShare = 0.5;     // so long are all of them together, of the work's time
constexpr uint32_t kAutoPasses = 20;      // at most, and at most for kAutoSeconds, but two passes
constexpr double kAutoSeconds = 6;        // where two do not take twice that

double seconds_of(const auto& work) {
  const uint64_t begin = kernels::steady_now_ns();
  work();
  return 1e-9 * static_cast<double>(kernels::steady_now_ns() - begin);
}

uint32_t start_tokens(const BenchPoint& point) {
  return point.kind == BenchPoint::Kind::kPrefill ? point.count
                                                  : std::max(kPromptTokens, point.depth + 1);
}

// Counts the distinct experts of each mixture it runs.
class ExpertCounter final : public kernels::ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;
  void experts(kernels::Rows z, std::span<const kernels::ExpertWeights> weights,
               const kernels::Routing& routing, const kernels::ActivationSpec& act,
               kernels::MutableRows out, size_t rows) override {
    used_.assign(weights.size(), false);
    for (size_t i = 0; i < rows * routing.top_k; ++i) used_[routing.expert[i]] = true;
    count_ += static_cast<uint64_t>(std::count(used_.begin(), used_.end(), true));
    ForwardingOps::experts(z, weights, routing, act, out, rows);
  }
  uint64_t count() const { return count_; }

 private:
  std::vector<bool> used_;
  uint64_t count_ = 0;
};

class ModelBench {
 public:
  ModelBench(BenchEngine& engine, const ExpertCounter& counter, const ModelCosts& costs,
             const BenchReport& report, uint32_t repeat)
      : engine_(engine),
        counter_(counter),
        costs_(costs),
        report_(report),
        repeat_(repeat),
        ceilings_(report.threads) {}

  BenchFigure measure(const BenchPoint& point) {
    BenchFigure figure;
    figure.point = point;
    if (point.kind == BenchPoint::Kind::kPrefill) {
      prefill(figure);
    } else {
      decode(figure);
    }
    return figure;
  }

 private:
  void prefill(BenchFigure& figure) {
    const uint32_t tokens = figure.point.count;
    const double best = best_of(figure, [&] {
      engine_.open(1, tokens, 0);
      return seconds_of([&] { engine_.prefill(); });
    });
    figure.tokens_per_s = tokens / best;
    judge(figure, prefill_costs(costs_, tokens), best);
  }

  void decode(BenchFigure& figure) {
    const BenchPoint& point = figure.point;
    engine_.open(point.count, start_tokens(point), point.depth);
    engine_.prefill();
    engine_.decode();
    const double once = seconds_of([&] { engine_.decode(); });
    const auto steps = static_cast<uint32_t>(std::clamp(kPassSeconds / once, 1.0, 1.0 * kMaxSteps));
    const uint64_t counted = counter_.count();
    uint32_t passes = 0;
    const double best = best_of(figure, [&] {
      ++passes;
      return seconds_of([&] {
        for (uint32_t i = 0; i < steps; ++i) engine_.decode();
      });
    });
    const double step = best / steps;
    figure.tokens_per_s = point.count / step;
    figure.experts = static_cast<double>(counter_.count() - counted) / (passes * steps);
    if (point.depth != 0) {
      judge_depth(figure, step);
    } else {
      const double positions = start_tokens(point) + 2 + passes * steps / 2.0;
      judge(figure, decode_costs(costs_, {1.0 * point.count, positions, figure.experts}), step);
    }
  }

  // The best of some passes. The machine's rates are measured between them, in passes as long:
  // what steps are compared with is what a plain loop gets for the time of steps, not what it gets
  // for a moment. A prefill lasts longer than these passes, and so gets several after each of its
  // own: one disturbed pass must not lower the ceiling.
  double best_of(BenchFigure& figure, const auto& pass) {
    const uint32_t passes = repeat_ != 0 ? repeat_ : kAutoPasses;
    double best = 0, total = 0;
    for (uint32_t done = 0; done < passes; ++done) {
      const bool enough = total >= kAutoSeconds && (done >= 2 || total >= 2 * kAutoSeconds);
      if (repeat_ == 0 && enough) break;
      const double seconds = pass();
      best = done == 0 ? seconds : std::min(best, seconds);
      total += seconds;
      figure.rates.keep_best(
          ceilings_.measure(kCeilingShare * seconds, std::min(seconds, kCeilingSeconds)));
    }
    return best;
  }

  static void judge(BenchFigure& figure, const StepCosts& least, double seconds) {
    const kernels::CeilingRates& rates = figure.rates;
    figure.limit = least.bytes / rates.read > least.flops / rates.flops
                       ? BenchFigure::Limit::kBytes
                       : BenchFigure::Limit::kFlops;
    figure.fraction = least.seconds(rates.read, rates.flops) / seconds;
  }

  void judge_depth(BenchFigure& figure, double step) const {
    const BenchPoint shallow = {BenchPoint::Kind::kDecode, figure.point.count, 0};
    for (const BenchFigure& other : report_.figures) {
      if (other.point != shallow) continue;
      const double longer = step - shallow.count / other.tokens_per_s;
      const StepCosts least = context_costs(costs_, 1.0 * figure.point.depth * shallow.count);
      if (longer > 0) judge(figure, least, longer);
    }
  }

  BenchEngine& engine_;
  const ExpertCounter& counter_;
  const ModelCosts& costs_;
  const BenchReport& report_;
  uint32_t repeat_;
  kernels::Ceilings ceilings_;
};

BenchEngine::Size size_for(const EngineConfig& config, const BenchOptions& options) {
  BenchEngine::Size size;
  size.chunk_tokens = config.chunk_tokens;
  const uint32_t repeat = options.repeat != 0 ? options.repeat : kAutoPasses;
  for (const BenchPoint& point : options.points) {
    const bool prefill = point.kind == BenchPoint::Kind::kPrefill;
    const uint32_t sequences = prefill ? 1 : point.count;
    const uint32_t tokens = start_tokens(point) + (prefill ? 0 : 2 + repeat * kMaxSteps);
    if (sequences > config.chunk_tokens) {
      throw std::runtime_error("chunk-tokens: " + to_string(point) +
                               " needs as many token rows as it has sequences");
    }
    size.sequences = std::max(size.sequences, sequences);
    size.pages = std::max(size.pages, sequences * (tokens / config.page_tokens + 1));
  }
  return size;
}

void check_memory(const EngineConfig& config, const CacheGeometry& geometry,
                  const BenchEngine::Size& size) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const uint64_t need = size.sequences * geometry.state_bytes + size.pages * geometry.page_bytes;
  if (need <= arena_bytes(config)) return;
  throw std::runtime_error(
      "memory-gb: these points need " + std::to_string(static_cast<double>(need) / kGiB) +
      " GiB of states and pages, " + std::to_string(config.memory_gb) + " are allowed");
}

}  // namespace

BenchReport bench_model(const EngineConfig& config, const BenchOptions& options,
                        const std::function<void(const BenchFigure&)>& on_figure) {
  if (config.device != "cpu")
    throw std::runtime_error("device: the benchmark runs on cpu, not on " + config.device);
  BenchReport report;
  report.model = config.model;
  report.target = kernels::cpu_target_name();
  report.threads = worker_threads(config);
  const BenchEngine::Size size = size_for(config, options);
  const ModelOptions model_settings = model_options(config);
  const auto device = kernels::make_cpu_device();
  const auto ops = kernels::make_traced_ops(kernels::make_cpu_ops(report.threads));
  ExpertCounter counter(*ops);
  const ModelConfig model = ModelConfig::load(config.model);
  const WeightsFile file = WeightsFile::load(config.model);
  const ModelCosts costs(model, weight_types(model, file), model_settings.kv_dtype);
  auto loaded = load_hybrid_model(model, file, counter, model_settings);
  check_memory(config, loaded->geometry(), size);
  BenchEngine engine(*device, std::move(loaded), size);
  ModelBench bench(engine, counter, costs, report, options.repeat);
  engine.open(1, kPromptTokens, 0);  // the first pass over the weights is not measured
  engine.prefill();
  for (const BenchPoint& point : options.points) {
    report.figures.push_back(bench.measure(point));
    on_figure(report.figures.back());
  }
  return report;
}

}  // namespace runtime
