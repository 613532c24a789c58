#include "kernels/cpu/rows.hpp"

#include <algorithm>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/row_vectors.hpp"
// row_vectors.hpp comes first: it makes the rules compile for this target.
#include "kernels/activation.hpp"
#include "kernels/residual.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// y = x * inverse * weight
KERNEL_FN void scale_row(const float* x, Lanes inverse, const float* weight, float* y,
                         size_t width) {
  for_vectors(width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(rms_scale(load_some(x + at, count), inverse, load_some(weight + at, count)), y + at,
               count);
  });
}

void rms_norm(const float* x, const float* weight, float eps, float* y, size_t width) {
  LaneSum squares;
  for_lanes(width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes value = load_some(x + at, count);
    squares.part[j] = multiply_add(value, value, squares.part[j]);
  });
  scale_row(x, inverse_rms_of(squares, width, eps), weight, y, width);
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

// sum over i of weight[i] * rows[i], ascending, from +0: calls done(offset, count, lane group,
// sum).
template <class Done>
KERNEL_FN void for_weighted_sums(const float* const* rows, const float* weight, size_t count,
                                 size_t width, const Done& done) {
  constexpr size_t kVectors = 2 * kPer16;  // side by side, so that the additions overlap
  size_t at = 0;
  for (; at + 32 <= width; at += 32) {
    Lanes sum[kVectors];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) sum[v] = Lanes::zero();
    for (size_t i = 0; i < count; ++i) {
      const Lanes w(weight[i]);
      const float* row = rows[i] + at;
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v)
        sum[v] = residual_sum(w, Lanes::load(row + v * kWidth), sum[v]);
    }
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) done(at + v * kWidth, kWidth, v % kPer16, sum[v]);
  }
  for (size_t v = 0; at < width; ++v, at += kWidth) {
    const size_t some = std::min(kWidth, width - at);
    Lanes sum = Lanes::zero();
    for (size_t i = 0; i < count; ++i)
      sum = residual_sum(Lanes(weight[i]), load_some(rows[i] + at, some), sum);
    done(at, some, v % kPer16, sum);
  }
}

void weighted_sum(std::span<const float* const> rows, const float* weight, float* out,
                  size_t width) {
  for_weighted_sums(rows.data(), weight, rows.size(), width,
                    [&](size_t at, size_t count, size_t, Lanes sum)
                        KERNEL_LAMBDA { store_some(sum, out + at, count); });
}

// Scores of a row, read once through value(offset, count), with G gains.
template <size_t G, class Value>
KERNEL_FN void score_gains(const Value& value, const float* const* gains, float eps, float* score,
                           size_t width) {
  LaneSum squares, dots[G];
  for_lanes(width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes x = value(at, count);
    squares.part[j] = multiply_add(x, x, squares.part[j]);
#pragma GCC unroll 4
    for (size_t g = 0; g < G; ++g)
      dots[g].part[j] = multiply_add(x, load_some(gains[g] + at, count), dots[g].part[j]);
  });
  const Lanes inverse = inverse_rms_of(squares, width, eps);
  for (size_t g = 0; g < G; ++g) score[g] = residual_score(Lanes(fold(dots[g])), inverse).first();
}

void residual_scores(const float* x, std::span<const float* const> gains, float eps, float* score,
                     size_t width) {
  const auto value = [&](size_t at, size_t count)
                         KERNEL_LAMBDA { return load_some(x + at, count); };
  size_t g = 0;
  for (; g + 4 <= gains.size(); g += 4) score_gains<4>(value, &gains[g], eps, score + g, width);
  for (; g < gains.size(); ++g) score_gains<1>(value, &gains[g], eps, score + g, width);
}

// Scores of all sources -> their weights.
KERNEL_FN void softmax_sources(float* score, size_t count) {
  const Lanes max(*std::max_element(score, score + count));
  for_vectors(count, [&](size_t at, size_t some) KERNEL_LAMBDA {
    store_some(math::exp(load_some(score + at, some) - max), score + at, some);
  });
  float total = 0;
  for (size_t j = 0; j < count; ++j) total += score[j];  // push order
  for (size_t j = 0; j < count; ++j) score[j] /= total;
}

void residual_mix(const cpu::ResidualRow& row, size_t width) {
  float* const prefix = row.prefix;
  const float* const sublayer = row.sublayer;
  if (sublayer != nullptr && row.restart) std::copy(sublayer, sublayer + width, prefix);
  if (sublayer != nullptr && !row.restart) add(sublayer, prefix, width);
  const size_t count = row.sources.size();
  if (count == 1) return rms_norm(prefix, row.norm, row.eps, row.out, width);
  const auto value = [&](size_t at, size_t some)
                         KERNEL_LAMBDA { return load_some(prefix + at, some); };
  score_gains<1>(value, &row.gain, row.eps, row.score + count - 1, width);
  softmax_sources(row.score, count);
  LaneSum squares;
  float* const out = row.out;
  for_weighted_sums(row.sources.data(), row.score, count, width,
                    [&](size_t at, size_t some, size_t j, Lanes mix) KERNEL_LAMBDA {
                      store_some(mix, out + at, some);
                      squares.part[j] = multiply_add(mix, mix, squares.part[j]);
                    });
  scale_row(out, inverse_rms_of(squares, width, row.eps), row.norm, out, width);
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
HWY_EXPORT(residual_scores);
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
void residual_scores_row(const float* x, std::span<const float* const> gains, float eps,
                         float* score, size_t width) {
  HWY_DYNAMIC_DISPATCH(residual_scores)(x, gains, eps, score, width);
}
void residual_mix_row(const ResidualRow& row, size_t width) {
  HWY_DYNAMIC_DISPATCH(residual_mix)(row, width);
}
void weighted_sum_row(std::span<const float* const> rows, const float* weight, float* out,
                      size_t width) {
  HWY_DYNAMIC_DISPATCH(weighted_sum)(rows, weight, out, width);
}
const char* rows_target_name() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace cpu
}  // namespace kernels
#endif
