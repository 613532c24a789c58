// Gradients of a linear layer y = x W^T.
#pragma once

#include <cstddef>

#include "kernels/train/gradient_ops.hpp"
#include "runtime/train/growing_grid.hpp"
#include "runtime/train/network_parameters.hpp"

namespace runtime {

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
