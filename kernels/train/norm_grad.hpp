// Gradient of one row's RMSNorm. Included once per SIMD target.
#if defined(KERNELS_TRAIN_NORM_GRAD_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_TRAIN_NORM_GRAD_HPP_
#else
#define KERNELS_TRAIN_NORM_GRAD_HPP_
#endif

#include "kernels/cpu/row_vectors.hpp"

KERNEL_NAMESPACE_BEGIN

struct NormGradRow {
  const float *x, *weight, *dy;
  float* dx;       // may be dy
  float* dweight;  // or null
  size_t width;
};

// With i = 1 / rms(x): dx (+)= i w dy - x i^3 / width (w dy . x),  dweight += dy x i.
template <bool kAdd>
KERNEL_FN void norm_grad_row(const NormGradRow& row, float eps) {
  const float *const x = row.x, *const weight = row.weight, *const dy = row.dy;
  LaneSum squares, dot;
  for_lanes(row.width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes value = load_some(x + at, count);
    const Lanes d = load_some(dy + at, count) * load_some(weight + at, count);
    squares.part[j] = multiply_add(value, value, squares.part[j]);
    dot.part[j] = multiply_add(value, d, dot.part[j]);
  });
  const Lanes inverse = inverse_rms_of(squares, row.width, eps);
  const Lanes along = Lanes(-fold(dot) / static_cast<float>(row.width)) * inverse * inverse;
  float *const dx = row.dx, *const dweight = row.dweight;
  for_vectors(row.width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    const Lanes value = load_some(x + at, count), d = load_some(dy + at, count);
    if (dweight != nullptr) {
      const Lanes sum = load_some(dweight + at, count);
      store_some(multiply_add(d, value * inverse, sum), dweight + at, count);
    }
    const Lanes g = inverse * multiply_add(along, value, d * load_some(weight + at, count));
    store_some(kAdd ? load_some(dx + at, count) + g : g, dx + at, count);
  });
}

KERNEL_NAMESPACE_END
#endif
