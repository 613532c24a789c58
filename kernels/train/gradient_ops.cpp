// GradientOps of floats: hands each operation to its kernel, with scratch that only grows.
#include "kernels/train/gradient_ops.hpp"

#include <algorithm>

#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/train/attention_grad.hpp"
#include "kernels/train/kda_grad.hpp"
#include "kernels/train/product.hpp"
#include "kernels/train/row_grads.hpp"

namespace kernels {
namespace {

size_t longest(std::span<const Sequence> sequences) {
  size_t most = 0;
  for (const Sequence& sequence : sequences) most = std::max(most, sequence.count);
  return most;
}

class CpuGradientOps final : public GradientOps<float> {
 public:
  void product(const Product<float>& args) override {
    multiply(args, product_.reserve(kProductScratch));
  }
  void rms_norm(Grid<const float> x, const float* weight, float eps, Grid<float> y, size_t rows,
                size_t width) override {
    for (size_t r = 0; r < rows; ++r) cpu::rms_norm_row(x.row(r), weight, eps, y.row(r), width);
  }
  void rms_norm_grad(const RmsNormGrad<float>& args) override { norm_grad_rows(args); }
  void glu_grad(const GluGrad<float>& args) override { glu_grad_rows(args); }
  void attention_grad(const AttentionGrad<float>& args) override {
    attention_grad_heads(args,
                         layer_.reserve(attention_grad_scratch(args, longest(args.sequences))),
                         product_.reserve(kProductScratch));
  }
  void kda_grad(const KdaGrad<float>& args) override {
    kda_grad_heads(args, layer_.reserve(kda_grad_scratch(args, longest(args.sequences))));
  }
  void residual_grad(const ResidualGrad<float>& args) override {
    residual_grad_rows(args, layer_.reserve(residual_grad_scratch(args)));
  }
  void route_grad(const RouteGrad<float>& args) override { route_grad_rows(args); }
  double cross_entropy(const CrossEntropyGrad<float>& args) override {
    return cross_entropy_rows(args);
  }

 private:
  cpu::Scratch product_, layer_;
};

}  // namespace

std::unique_ptr<GradientOps<float>> make_cpu_gradient_ops() {
  return std::make_unique<CpuGradientOps>();
}

}  // namespace kernels
