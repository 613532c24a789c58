#include "kernels/cpu/rows.hpp"

#include <algorithm>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/activation.hpp"
#include "kernels/residual.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// Calls fn(offset, count) for each vector of a row; count < kWidth only at the end.
template <class Fn>
KERNEL_FN void for_vectors(size_t width, const Fn& fn) {
  size_t i = 0;
  for (; i + kWidth <= width; i += kWidth) fn(i, kWidth);
  if (i < width) fn(i, width - i);
}

// Folds 16 lanes of term(offset, count, sum) over a row; absent elements must add exactly nothing.
template <class Term>
KERNEL_FN float lane_sum(size_t width, const Term& term) {
  LaneSum sum;
  for (size_t i = 0; i < width; i += 16) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kPer16; ++j) {
      const size_t at = i + j * kWidth;
      if (at < width) sum.part[j] = term(at, std::min(kWidth, width - at), sum.part[j]);
    }
  }
  float lane[16];
  sum.store(lane);
  return fold_lanes(lane);
}

KERNEL_FN float inverse_rms_of(const float* x, size_t width, float eps) {
  const float squares = lane_sum(width, [&](size_t at, size_t count, Lanes sum) KERNEL_LAMBDA {
    const Lanes value = load_some(x + at, count);
    return multiply_add(value, value, sum);
  });
  return inverse_rms(Lanes(squares), static_cast<float>(width), eps).first();
}

void rms_norm(const float* x, const float* weight, float eps, float* y, size_t width) {
  const Lanes inverse(inverse_rms_of(x, width, eps));
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(rms_scale(load_some(x + at, count), inverse, load_some(weight + at, count)), y + at,
               count);
  });
}

void add(const float* x, float* y, size_t width) {
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(load_some(y + at, count) + load_some(x + at, count), y + at, count);
  });
}

void glu(const ActivationSpec& act, const float* gate, const float* up, float* out, size_t width) {
  const float beta = act.beta, linear_beta = act.linear_beta;
  if (act.kind == Activation::kSwiGLU) {
    for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
      store_some(swiglu(load_some(gate + at, count), load_some(up + at, count)), out + at, count);
    });
  } else {
    for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
      const Lanes u = load_some(up + at, count);
      store_some(situ_glu(load_some(gate + at, count), u, beta, linear_beta), out + at, count);
    });
  }
}

void sigmoid_of(const float* x, float* y, size_t width) {
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(math::sigmoid(load_some(x + at, count)), y + at, count);
  });
}

void sigmoid_gate(const float* gate, float* y, size_t width) {
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(load_some(y + at, count) * math::sigmoid(load_some(gate + at, count)), y + at,
               count);
  });
}

void weighted_sum(std::span<const float* const> rows, const float* weight, float* out,
                  size_t width) {
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    Lanes sum = Lanes::zero();
    for (size_t i = 0; i < rows.size(); ++i)
      sum = residual_sum(Lanes(weight[i]), load_some(rows[i] + at, count), sum);
    store_some(sum, out + at, count);
  });
}

void residual_mix(std::span<const float* const> sources, const float* gain, float eps, float* out,
                  size_t width, float* score) {
  for (size_t j = 0; j < sources.size(); ++j) {
    const Lanes inverse(inverse_rms_of(sources[j], width, eps));
    score[j] = lane_sum(width, [&](size_t at, size_t count, Lanes sum) KERNEL_LAMBDA {
      return residual_score(load_some(sources[j] + at, count), inverse, load_some(gain + at, count),
                            sum);
    });
  }
  const Lanes max(*std::max_element(score, score + sources.size()));
  for_vectors(sources.size(), [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(math::exp(load_some(score + at, count) - max), score + at, count);
  });
  float total = 0;
  for (size_t j = 0; j < sources.size(); ++j) total += score[j];  // push order
  for (size_t j = 0; j < sources.size(); ++j) score[j] /= total;
  weighted_sum(sources, score, out, width);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(rms_norm);
HWY_EXPORT(add);
HWY_EXPORT(glu);
HWY_EXPORT(sigmoid_of);
HWY_EXPORT(sigmoid_gate);
HWY_EXPORT(weighted_sum);
HWY_EXPORT(residual_mix);
HWY_EXPORT(target_name);

namespace cpu {

void rms_norm_row(const float* x, const float* weight, float eps, float* y, size_t width) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x, weight, eps, y, width);
}
void add_row(const float* x, float* y, size_t width) { HWY_DYNAMIC_DISPATCH(add)(x, y, width); }
void glu_row(const ActivationSpec& act, const float* gate, const float* up, float* out,
             size_t width) {
  HWY_DYNAMIC_DISPATCH(glu)(act, gate, up, out, width);
}
void sigmoid_row(const float* x, float* y, size_t width) {
  HWY_DYNAMIC_DISPATCH(sigmoid_of)(x, y, width);
}
void sigmoid_gate_row(const float* gate, float* y, size_t width) {
  HWY_DYNAMIC_DISPATCH(sigmoid_gate)(gate, y, width);
}
void residual_mix_row(std::span<const float* const> sources, const float* gain, float eps,
                      float* out, size_t width, float* score) {
  HWY_DYNAMIC_DISPATCH(residual_mix)(sources, gain, eps, out, width, score);
}
void weighted_sum_row(std::span<const float* const> rows, const float* weight, float* out,
                      size_t width) {
  HWY_DYNAMIC_DISPATCH(weighted_sum)(rows, weight, out, width);
}
const char* rows_target_name() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace cpu
}  // namespace kernels
#endif
