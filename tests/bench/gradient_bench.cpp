// The backward pass at the shape of the small pretrained model (hidden 256, 1024 rows in 4
// sequences): every product, then every other operation with its microseconds per row.
//   bench-gradient
#include "kernels/cpu/scratch.hpp"
#include "kernels/train/product.hpp"
#include "tests/bench/timing.hpp"

namespace {

using kernels::Grid;
using kernels::Product;

constexpr size_t kRows = 1024;

// The three products of a layer y = x W^T with `outputs` x `inputs` weights.
void bench_layer(bench::Run& run, const std::string& name, size_t rows, size_t outputs,
                 size_t inputs) {
  const auto x = bench::floats(rows * inputs), w = bench::floats(outputs * inputs),
             dy = bench::floats(rows * outputs);
  std::vector<float> dx(rows * inputs), dw(outputs * inputs);
  kernels::cpu::Scratch scratch;
  float* const room = scratch.reserve(kernels::kProductScratch);
  const bench::Work work = {0, 0, 2.0 * static_cast<double>(rows * outputs * inputs)};
  run.report(name + " dx", work, [&] {
    kernels::multiply({rows,
                       inputs,
                       outputs,
                       {dy.data(), outputs},
                       {w.data(), inputs},
                       false,
                       false,
                       {dx.data(), inputs},
                       false},
                      room);
  });
  run.report(name + " dW", work, [&] {
    kernels::multiply({outputs,
                       inputs,
                       rows,
                       {dy.data(), outputs},
                       {x.data(), inputs},
                       true,
                       false,
                       {dw.data(), inputs},
                       true},
                      room);
  });
}

}  // namespace

int main(int, char**) {
  char one[] = "1";
  char* arguments[] = {one, one, nullptr};
  bench::Run run(2, arguments);
  bench_layer(run, "KDA inputs 1092x256", kRows, 1092, 256);
  bench_layer(run, "KDA output 256x256", kRows, 256, 256);
  bench_layer(run, "MLA q_b 192x96", kRows, 192, 96);
  bench_layer(run, "dense gate and up 1536x256", kRows, 1536, 256);
  bench_layer(run, "dense down 256x768", kRows, 256, 768);
  bench_layer(run, "latent 128x256", kRows, 128, 256);
  bench_layer(run, "expert gate and up 256x128", kRows / 4, 256, 128);
  bench_layer(run, "expert down 128x128", kRows / 4, 128, 128);
  bench_layer(run, "head 4096x256", kRows, 4096, 256);
  return 0;
}
