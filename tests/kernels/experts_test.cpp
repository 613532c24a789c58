// Routing and the routed experts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/kernels/tools.hpp"

using namespace kernels;

namespace {

struct Experts {
  std::vector<tools::StoredMatrix> stored;  // w1, w3, w2 of each expert
  std::vector<ExpertWeights> weights;

  Experts(std::mt19937& rng, Ops& ops, DType dtype, size_t count, size_t width, size_t hidden) {
    for (size_t e = 0; e < count; ++e) {
      stored.push_back(tools::random_matrix(rng, dtype, hidden, width));
      stored.push_back(tools::random_matrix(rng, dtype, hidden, width));
      stored.push_back(tools::random_matrix(rng, dtype, width, hidden));
      const auto* last = &stored.back();
      weights.push_back(
          {ops.pack(last[-2].view()), ops.pack(last[-1].view()), ops.pack(last[0].view())});
    }
  }
};

}  // namespace

TEST_CASE(
    "Routing picks the largest biased scores, ties to the lower id, and weighs by the unbiased "
    "ones",
    "[kernels][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const size_t experts = 5 + rng() % 60, rows = 30,
               top_k = 1 + rng() % std::min<size_t>(experts, 16);
  std::vector<float> logits(rows * experts), bias(experts);
  for (float& x : logits) x = static_cast<float>(static_cast<int>(rng() % 9) - 4);  // many ties
  for (float& x : bias) x = static_cast<float>(rng() % 3) * 0.25f;
  RouteArgs args{{logits.data(), experts}, bias.data(), experts, top_k, seed % 2 == 0, 2.446f};
  Routing routing;
  make_cpu_ops(2)->route(args, rows, routing);
  REQUIRE(routing.top_k == top_k);
  for (size_t r = 0; r < rows; ++r) {
    const auto score = [&](size_t e) {
      return 1 / (1 + std::exp(-double{logits[r * experts + e]}));
    };
    std::vector<size_t> order(experts);
    for (size_t e = 0; e < experts; ++e) order[e] = e;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return score(a) + bias[a] > score(b) + bias[b] + 1e-6;
    });
    order.resize(top_k);
    std::sort(order.begin(), order.end());
    double total = 0;
    for (const size_t e : order) total += score(e);
    for (size_t i = 0; i < top_k; ++i) {
      REQUIRE(routing.expert[r * top_k + i] == order[i]);
      const double weight = (seed % 2 == 0 ? score(order[i]) / total : score(order[i])) * 2.446;
      REQUIRE(routing.weight[r * top_k + i] == Approx(weight).epsilon(1e-6));
    }
  }
}

TEST_CASE("Routing of NaN logits is defined and yields NaN weights", "[kernels]") {
  const std::vector<float> logits(8, NAN);
  Routing routing;
  make_cpu_ops(1)->route({{logits.data(), 8}, nullptr, 8, 3, true, 1.0f}, 1, routing);
  CHECK(routing.expert == std::vector<uint32_t>{0, 1, 2});
  CHECK(std::isnan(routing.weight[0]));
}

TEST_CASE("Experts agree with double precision for every weight type", "[kernels]") {
  std::mt19937 rng(2);
  tools::for_each_target([&] {
    for (const DType dtype : {DType::kBF16, DType::kMXFP4}) {
      const auto ops = make_cpu_ops(2);
      const size_t count = 6, width = 64, hidden = 96, rows = 20, top_k = 3;
      const Experts experts(rng, *ops, dtype, count, width, hidden);
      const auto z = tools::random_floats(rng, rows * width),
                 logits = tools::random_floats(rng, rows * count);
      Routing routing;
      ops->route({{logits.data(), count}, nullptr, count, top_k, true, 1.0f}, rows, routing);
      std::vector<float> out(rows * width, 5.0f);
      ops->experts({z.data(), width}, experts.weights, routing, {Activation::kSiTU, 4, 25},
                   {out.data(), width}, rows);
      std::vector<double> expected(rows * width, 0.0);
      for (size_t i = 0; i < rows * top_k; ++i) {
        const tools::StoredMatrix* m = &experts.stored[3 * routing.expert[i]];
        const float* x = &z[i / top_k * width];
        std::vector<double> hidden_values(hidden);
        for (size_t j = 0; j < hidden; ++j) {
          double g = 0, u = 0;
          for (size_t k = 0; k < width; ++k)
            g += m[0].value[j * width + k] * x[k], u += m[1].value[j * width + k] * x[k];
          hidden_values[j] = 4 * std::tanh(g / 4) / (1 + std::exp(-g)) * 25 * std::tanh(u / 25);
        }
        for (size_t j = 0; j < width; ++j) {
          double y = 0;
          for (size_t k = 0; k < hidden; ++k) y += m[2].value[j * hidden + k] * hidden_values[k];
          expected[i / top_k * width + j] += routing.weight[i] * y;
        }
      }
      CHECK(tools::relative_error(out, expected) < 5e-6);
    }
  });
}

TEST_CASE("A row's expert sum has the same bytes in any batch and on any number of threads",
          "[kernels][property]") {
  std::mt19937 rng(3);
  tools::for_each_target([&] {
    for (const DType dtype : {DType::kF32, DType::kMXFP4}) {
      const auto one = make_cpu_ops(1);
      const size_t count = 9, width = 96, hidden = 32, rows = 70, top_k = 4;
      const Experts experts(rng, *one, dtype, count, width, hidden);
      const auto z = tools::random_floats(rng, rows * width),
                 logits = tools::random_floats(rng, rows * count);
      const auto run = [&](Ops& ops, size_t first, size_t n) {
        Routing routing;
        ops.route({{&logits[first * count], count}, nullptr, count, top_k, true, 1.0f}, n, routing);
        std::vector<float> out(n * width);
        ops.experts({&z[first * width], width}, experts.weights, routing, {}, {out.data(), width},
                    n);
        return out;
      };
      std::vector<float> expected;
      for (size_t r = 0; r < rows; ++r) {
        const auto y = run(*one, r, 1);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      for (const unsigned threads : {1u, 2u, 3u})
        CHECK(tools::same_bytes(run(*make_cpu_ops(threads), 0, rows), expected));
    }
  });
}
