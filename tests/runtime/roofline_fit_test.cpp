#include "runtime/sim/roofline_fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace {

using kernels::RooflineParams;
using runtime::RooflineSample;

// Decode steps of some rows, prompts of some length in chunks of 512, as a small model has them.
std::vector<RooflineSample> loads() {
  std::vector<RooflineSample> samples;
  const auto work = [](double tokens, double context) {
    kernels::RooflineWork out;
    out.layers = 8;
    out.tokens = tokens;
    out.bytes = 2e7 + std::min(tokens, 12.0) * 1e6 + context * 600;
    out.flops = tokens * 2.2e7 + context * tokens * 2000;
    return out;
  };
  for (const double rows : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0})
    samples.push_back({"decode", {work(rows, 100 * rows)}, false, 0});
  samples.push_back({"deep", {work(1, 8000)}, false, 0});
  for (const double tokens : {64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0}) {
    RooflineSample sample{"prompt", {}, true, 0};
    for (double at = 0; at < tokens; at += 512)
      sample.steps.push_back(work(std::min(512.0, tokens - at), at));
    samples.push_back(sample);
  }
  return samples;
}

void measure(std::vector<RooflineSample>& samples, const RooflineParams& truth, double request_us,
             double noise, std::mt19937& random) {
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  for (RooflineSample& sample : samples) {
    sample.measured_us = sample.is_request ? request_us : 0;
    for (const auto& work : sample.steps) sample.measured_us += kernels::roofline_us(truth, work);
    sample.measured_us *= factor(random);
  }
}

}  // namespace

TEST_CASE("A roofline that made the times is found again", "[sim]") {
  std::mt19937 random(3);
  const RooflineParams start{24e3, 115e3, 80, 5, 10};
  for (const RooflineParams& truth :
       {RooflineParams{30e3, 90e3, 80, 12, 4}, RooflineParams{9e3, 300e3, 80, 40, 0},
        RooflineParams{20e3, 60e3, 80, 0, 25}}) {
    auto samples = loads();
    measure(samples, truth, 400, 0, random);
    const auto fit = runtime::fit_roofline(samples, start);
    CAPTURE(truth.bytes_per_us, truth.flops_per_us);
    CHECK(fit.worst_error < 1e-6);
    CHECK(fit.params.bytes_per_us == Approx(truth.bytes_per_us).epsilon(1e-4));
    CHECK(fit.params.flops_per_us == Approx(truth.flops_per_us).epsilon(1e-4));
    CHECK(fit.params.token_us == Approx(truth.token_us).margin(0.01));
    CHECK(fit.params.step_us == 80);
    CHECK(fit.params.layer_us == Approx(truth.layer_us).margin(0.01));
    CHECK(fit.request_us == Approx(400).epsilon(1e-3));
  }
}

TEST_CASE("Noise in the times leaves a fit that predicts within it", "[sim][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  auto samples = loads();
  const RooflineParams truth{25e3, 110e3, 80, 10, 8}, start{24e3, 115e3, 80, 5, 10};
  measure(samples, truth, 300, 0.05, random);
  const auto fit = runtime::fit_roofline(samples, start);
  CHECK(fit.worst_error < 0.11);
  CHECK(fit.params.token_us >= 0);
  CHECK(fit.params.layer_us >= 0);
  CHECK(fit.request_us >= 0);
  // What was predicted is what the parameters say.
  for (size_t i = 0; i < samples.size(); ++i) {
    double sum = samples[i].is_request ? fit.request_us : 0;
    for (const auto& work : samples[i].steps) sum += kernels::roofline_us(fit.params, work);
    CHECK(sum == Approx(fit.predicted_us[i]).epsilon(1e-9));
  }
}

TEST_CASE("A step that costs less than the start's fixed cost has no cost of layers", "[sim]") {
  std::mt19937 random(1);
  auto samples = loads();
  measure(samples, {25e3, 110e3, 30, 0, 0}, 0, 0, random);
  const auto fit = runtime::fit_roofline(samples, {24e3, 115e3, 80, 5, 10});
  CHECK(fit.params.step_us == Approx(30).epsilon(1e-3));
  CHECK(fit.params.layer_us == Approx(0).margin(1e-6));
  samples.resize(3);
  CHECK_THROWS_WITH(runtime::fit_roofline(samples, {24e3, 115e3, 80, 5, 10}),
                    Catch::Contains("too few"));
}
