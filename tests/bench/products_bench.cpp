// Products as a running model calls them: every number of rows that decoding sees, the small
// matrices of one layer after another, and the routed experts.
//   bench-products [threads]
#include "tests/bench/timing.hpp"

namespace {

using kernels::DType;
using kernels::MatrixPtr;

void bench_rows(bench::Run& run, DType dtype, size_t n, size_t k,
                std::initializer_list<size_t> row_counts) {
  kernels::Ops& ops = run.ops();
  const size_t bytes = dtype == DType::kMXFP4 ? n * k / 2 : n * k * 2;
  const auto set = bench::matrices(ops, dtype, n, k, (size_t{80} << 20) / bytes + 1);
  const auto x = bench::floats(512 * k);
  std::vector<float> y(512 * n);
  size_t at = 0;
  for (const size_t rows : row_counts) {
    const double flops = 2.0 * static_cast<double>(n * k * rows);
    const auto most = static_cast<size_t>(2e8 / flops);  // about 1 ms
    const size_t per_pass = std::max<size_t>(1, std::min(most, (size_t{12} << 20) / bytes));
    const auto count = static_cast<double>(per_pass);
    run.report(std::string(to_string(dtype)) + " " + std::to_string(n) + "x" + std::to_string(k) +
                   ", " + std::to_string(rows) + " rows",
               {count * static_cast<double>(set[0]->bytes()), 0, count * flops}, [&] {
                 for (size_t i = 0; i < per_pass; ++i)
                   ops.matmul({x.data(), k}, *set[at++ % set.size()], {y.data(), n}, rows);
               });
  }
}

// The dense products of 8 layers in turn: [outputs, inputs] as the bench models stack them.
void bench_step(bench::Run& run) {
  constexpr size_t kShapes[][2] = {{3336, 1024}, {1024, 128}, {1024, 128}, {1024, 1024},
                                   {1560, 1024}, {1024, 512}, {384, 1024}, {1536, 384},
                                   {128, 1024},  {1024, 128}};
  constexpr size_t kLayers = 8, kWidest = 4096;
  std::vector<MatrixPtr> set;
  double bytes = 0, weights = 0;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    for (const auto& [n, k] : kShapes) {
      set.push_back(std::move(bench::matrices(run.ops(), DType::kBF16, n, k, 1)[0]));
      bytes += static_cast<double>(set.back()->bytes());
      weights += static_cast<double>(n * k);
    }
  }
  const auto x = bench::floats(32 * kWidest);
  std::vector<float> y(32 * kWidest);
  for (const size_t rows : {1u, 2u, 4u, 8u, 16u, 32u}) {
    run.report("80 small products, " + std::to_string(rows) + " rows",
               {bytes, 0, 2.0 * weights * static_cast<double>(rows)}, [&] {
                 for (const MatrixPtr& w : set)
                   run.ops().matmul({x.data(), kWidest}, *w, {y.data(), kWidest}, rows);
               });
  }
}

constexpr uint32_t kExperts = 24, kTopK = 4;

// Different experts for each row, drawn evenly.
kernels::Routing even_routing(size_t rows) {
  std::mt19937 rng(7);
  kernels::Routing routing;
  routing.top_k = kTopK;
  std::vector<uint32_t> ids(kExperts);
  for (uint32_t e = 0; e < kExperts; ++e) ids[e] = e;
  for (size_t r = 0; r < rows; ++r) {
    std::vector<uint32_t> chosen;
    std::sample(ids.begin(), ids.end(), std::back_inserter(chosen), kTopK, rng);
    routing.expert.insert(routing.expert.end(), chosen.begin(), chosen.end());
    routing.weight.insert(routing.weight.end(), kTopK, 1.0f / kTopK);
  }
  return routing;
}

void bench_experts(bench::Run& run, DType dtype, size_t width, size_t hidden) {
  constexpr size_t kLayers = 8;
  std::vector<std::vector<kernels::ExpertWeights>> layers(kLayers);
  for (auto& weights : layers) {
    auto in = bench::matrices(run.ops(), dtype, hidden, width, 2 * kExperts);
    auto out = bench::matrices(run.ops(), dtype, width, hidden, kExperts);
    for (size_t e = 0; e < kExperts; ++e)
      weights.push_back({std::move(in[2 * e]), std::move(in[2 * e + 1]), std::move(out[e])});
  }
  const auto z = bench::floats(512 * width);
  std::vector<float> y(512 * width);
  const double expert_bytes = 3.0 * static_cast<double>(layers[0][0].w1->bytes());
  size_t at = 0;
  for (const size_t rows : {1u, 4u, 8u, 16u, 32u, 512u}) {
    const kernels::Routing routing = even_routing(rows);
    std::vector<uint32_t> distinct = routing.expert;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const size_t per_pass = rows == 512 ? 1 : rows >= 8 ? 2 : 8;
    const auto count = static_cast<double>(per_pass);
    run.report(std::string(to_string(dtype)) + " experts, " + std::to_string(rows) + " rows",
               {count * expert_bytes * static_cast<double>(distinct.size()), 0,
                count * 6.0 * static_cast<double>(width * hidden * rows * kTopK)},
               [&] {
                 for (size_t i = 0; i < per_pass; ++i) {
                   run.ops().experts({z.data(), width}, layers[at++ % kLayers], routing,
                                     {kernels::Activation::kSiTU}, {y.data(), width}, rows);
                 }
               });
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Run run(argc, argv);
  for (const DType dtype : {DType::kBF16, DType::kMXFP4})
    bench_rows(run, dtype, 4096, 1024, {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 85, 512});
  bench_rows(run, DType::kBF16, 1024, 4096, {1, 16, 512});
  bench_rows(run, DType::kBF16, 16384, 1024, {1, 16});
  bench_step(run);
  bench_experts(run, DType::kMXFP4, 512, 512);
  bench_experts(run, DType::kBF16, 1024, 384);
  return 0;
}
