// Gradients of a low-rank addition y += s B (A x) to a linear layer:
//   z = A x,  dz = s B^T dy,  dB += s dy z^T,  dA += dz x^T,  dx += A^T dz.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"
#include "runtime/adapter/adapter_parameters.hpp"
#include "runtime/train/growing_grid.hpp"

namespace runtime {

// Works on the modules of one layer after the other.
template <class Real>
class LowRankGrad {
 public:
  explicit LowRankGrad(kernels::GradientOps<Real>& ops) : ops_(ops) {}

  // The layer whose modules come next; null: it has none, and nothing below does anything.
  void enter(const LayerAdapterWeights<Real>* layer) { layer_ = layer; }
  const LayerAdapterWeights<Real>* layer() const { return layer_; }

  // y += s B (A x): the forward, where a backward pass computes it again.
  void forward(const LowRankWeight<Real>& w, size_t rows, kernels::Grid<const Real> x,
               kernels::Grid<Real> y) {
    if (!w) return;
    const auto z = shrink(w, rows, x);
    product({rows, w.n, layer_->rank, z, {w.b.value, layer_->rank}, false, true, y, true});
  }

  // dx += A^T dz. Keeps dz for weights() of the same module.
  void input(const LowRankWeight<Real>& w, size_t rows, kernels::Grid<const Real> dy,
             kernels::Grid<Real> dx) {
    if (!w) return;
    const size_t rank = layer_->rank;
    dz_rows_ = dz_.take(rows, rank);
    product({rows, rank, w.n, dy, {w.b.value, rank}, false, false, dz_rows_, false});
    scale(dz_rows_, rows);
    product({rows, w.k, rank, dz_rows_, {w.a.value, w.k}, false, false, dx, true});
  }

  // After input(): dA and dB.
  void weights(const LowRankWeight<Real>& w, size_t rows, kernels::Grid<const Real> dy,
               kernels::Grid<const Real> x) {
    if (!w) return;
    const size_t rank = layer_->rank;
    const auto z = shrink(w, rows, x);
    product({w.n, rank, rows, dy, z, true, false, {w.b.grad, rank}, true});
    product({rank, w.k, rows, dz_rows_, x, true, false, {w.a.grad, w.k}, true});
  }

  // Both, and both for the module `which` of the layer.
  void run(const LowRankWeight<Real>& w, size_t rows, kernels::Grid<const Real> dy,
           kernels::Grid<const Real> x, kernels::Grid<Real> dx) {
    input(w, rows, dy, dx);
    weights(w, rows, dy, x);
  }
  void run(LowRankWeight<Real> LayerAdapterWeights<Real>::*which, size_t rows,
           kernels::Grid<const Real> dy, kernels::Grid<const Real> x, kernels::Grid<Real> dx) {
    if (layer_ != nullptr) run(layer_->*which, rows, dy, x, dx);
  }

 private:
  void product(const kernels::Product<Real>& args) { ops_.product(args); }
  void scale(kernels::Grid<Real> z, size_t rows) const {
    for (size_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < layer_->rank; ++i) z.row(row)[i] *= layer_->scale;
  }
  // s A x
  kernels::Grid<const Real> shrink(const LowRankWeight<Real>& w, size_t rows,
                                   kernels::Grid<const Real> x) {
    const auto z = z_.take(rows, layer_->rank);
    product({rows, layer_->rank, w.k, x, {w.a.value, w.k}, false, true, z, false});
    scale(z, rows);
    return z;
  }

  kernels::GradientOps<Real>& ops_;
  const LayerAdapterWeights<Real>* layer_ = nullptr;
  GrowingGrid<Real> z_, dz_;
  kernels::Grid<Real> dz_rows_;
};

}  // namespace runtime
