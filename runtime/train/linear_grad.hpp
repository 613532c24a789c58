// Gradients of a linear layer y = x W^T, and scratch rows of any number type.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/train/gradient_ops.hpp"
#include "runtime/train/network_parameters.hpp"

namespace runtime {

// Grow-only rows; the contents are undefined, and earlier views die when it grows.
template <class Real>
class GrowingGrid {
 public:
  kernels::Grid<Real> take(size_t rows, size_t width) {
    const size_t ld = ((width + 15) / 16 | 1) * 16;  // an odd number of cache lines
    if (data_.size() < rows * ld) data_.resize(rows * ld);
    return {data_.data(), ld};
  }

 private:
  std::vector<Real> data_;
};

// Extents of W[n, k] and of the batch.
struct LinearShape {
  size_t rows, n, k;
};

// dx = dy W, stored or added.
template <class Real>
void linear_input_grad(kernels::GradientOps<Real>& ops, const LinearShape& shape,
                       kernels::Grid<const Real> dy, const Real* w, kernels::Grid<Real> dx,
                       bool add = false) {
  kernels::Product<Real> product;
  product.m = shape.rows;
  product.n = shape.k;
  product.k = shape.n;
  product.a = dy;
  product.b = {w, shape.k};
  product.c = dx;
  product.add = add;
  ops.product(product);
}

// dW += dy^T x, unless W is frozen.
template <class Real>
void linear_weight_grad(kernels::GradientOps<Real>& ops, const LinearShape& shape,
                        kernels::Grid<const Real> dy, kernels::Grid<const Real> x, Real* dw) {
  if (dw == nullptr) return;
  kernels::Product<Real> product;
  product.m = shape.n;
  product.n = shape.k;
  product.k = shape.rows;
  product.a = dy;
  product.a_transposed = true;
  product.b = x;
  product.c = {dw, shape.k};
  product.add = true;
  ops.product(product);
}

// Both.
template <class Real>
void linear_grad(kernels::GradientOps<Real>& ops, const LinearShape& shape,
                 kernels::Grid<const Real> dy, kernels::Grid<const Real> x, const Weight<Real>& w,
                 kernels::Grid<Real> dx) {
  linear_weight_grad(ops, shape, dy, x, w.grad);
  linear_input_grad(ops, shape, dy, w.value, dx);
}

}  // namespace runtime
