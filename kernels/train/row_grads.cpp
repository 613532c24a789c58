#include "kernels/train/row_grads.hpp"

#include <algorithm>
#include <limits>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/row_grads.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/row_vectors.hpp"
#include "kernels/train/activation_grad.hpp"
#include "kernels/train/norm_grad.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

void norm_grad_target(const RmsNormGrad<float>& args) {
  for (size_t r = 0; r < args.rows; ++r) {
    const NormGradRow row = {args.x.row(r),  args.weight,  args.dy.row(r),
                             args.dx.row(r), args.dweight, args.width};
    if (args.add) {
      norm_grad_row<true>(row, args.eps);
    } else {
      norm_grad_row<false>(row, args.eps);
    }
  }
}

// Slopes is slopes(gate, up).
template <class Slopes>
void glu_rows(const GluGrad<float>& args, const Slopes& slopes) {
  for (size_t r = 0; r < args.rows; ++r) {
    const float *gate = args.gate.row(r), *up = args.up.row(r), *dout = args.dout.row(r);
    float *dgate = args.dgate.row(r), *dup = args.dup.row(r);
    float* const inner = args.inner.data == nullptr ? nullptr : args.inner.row(r);
    const Lanes share(args.share == nullptr ? 1.0f : args.share[r]);
    LaneSum dshare;
    for_lanes(args.width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
      const auto h = slopes(load_some(gate + at, count), load_some(up + at, count));
      const Lanes d = load_some(dout + at, count), shared = d * share;
      dshare.part[j] = multiply_add(d, h.value, dshare.part[j]);
      if (inner != nullptr) store_some(share * h.value, inner + at, count);
      store_some(shared * h.dgate, dgate + at, count);
      store_some(shared * h.dup, dup + at, count);
    });
    if (args.share != nullptr) args.dshare[r] = fold(dshare);
  }
}

void glu_grad_target(const GluGrad<float>& args) {
  const float beta = args.activation.beta, linear_beta = args.activation.linear_beta;
  if (args.activation.kind == Activation::kSwiGLU) {
    glu_rows(args, [](Lanes gate, Lanes up) KERNEL_LAMBDA { return swiglu_slopes(gate, up); });
  } else {
    glu_rows(args, [=](Lanes gate, Lanes up)
                       KERNEL_LAMBDA { return situ_slopes(gate, up, beta, linear_beta); });
  }
}

// The mix of one row's sources.
struct MixRow {
  size_t count, width;
  const float* source[kMaxResidualSources];
  float* dsource[kMaxResidualSources];
  float inverse[kMaxResidualSources], score[kMaxResidualSources], weight[kMaxResidualSources];
  float dot[kMaxResidualSources];  // d mix . source
};

// Scores, their softmax, and the mix into `mix`.
KERNEL_FN void mix_sources(MixRow& row, const float* gain, float eps, float* mix) {
  float most = -std::numeric_limits<float>::infinity();
  for (size_t s = 0; s < row.count; ++s) {
    LaneSum squares, dot;
    const float* const x = row.source[s];
    for_lanes(row.width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
      const Lanes value = load_some(x + at, count);
      squares.part[j] = multiply_add(value, value, squares.part[j]);
      dot.part[j] = multiply_add(value, load_some(gain + at, count), dot.part[j]);
    });
    row.inverse[s] = inverse_rms_of(squares, row.width, eps).first();
    row.score[s] = fold(dot) * row.inverse[s];
    most = std::max(most, row.score[s]);
  }
  float total = 0;
  for_vectors(row.count, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(math::exp(load_some(row.score + at, count) - Lanes(most)), row.weight + at, count);
  });
  for (size_t s = 0; s < row.count; ++s) total += row.weight[s];
  for (size_t s = 0; s < row.count; ++s) row.weight[s] /= total;
  for_vectors(row.width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    Lanes sum = Lanes::zero();
    for (size_t s = 0; s < row.count; ++s)
      sum = multiply_add(Lanes(row.weight[s]), load_some(row.source[s] + at, count), sum);
    store_some(sum, mix + at, count);
  });
}

// Calls fn<N>(first) for groups of N sources, 3 while there are as many.
template <class Fn>
KERNEL_FN void for_groups(size_t count, const Fn& fn) {
  size_t s = 0;
  for (; s + 3 <= count; s += 3) fn.template operator()<3>(s);
  if (count - s == 2) return fn.template operator()<2>(s);
  if (count - s == 1) fn.template operator()<1>(s);
}

template <size_t N>
KERNEL_FN void source_dots(MixRow& row, size_t first, const float* dmix) {
  LaneSum dot[N];
  for_lanes(row.width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes d = load_some(dmix + at, count);
#pragma GCC unroll 3
    for (size_t s = 0; s < N; ++s) {
      const Lanes x = load_some(row.source[first + s] + at, count);
      dot[s].part[j] = multiply_add(d, x, dot[s].part[j]);
    }
  });
  for (size_t s = 0; s < N; ++s) row.dot[first + s] = fold(dot[s]);
}

// dsource += weight dmix + dscore d score/d source; dgain += dscore source / rms.
template <size_t N>
KERNEL_FN void source_grads(const MixRow& row, size_t first, float dot_mix, const float* gain,
                            const float* dmix, float* dgain) {
  Lanes weight[N], along_gain[N], along_source[N];
  for (size_t s = 0; s < N; ++s) {
    const size_t i = first + s;
    const float factor = row.weight[i] * (row.dot[i] - dot_mix) * row.inverse[i];
    weight[s] = Lanes(row.weight[i]), along_gain[s] = Lanes(factor);
    along_source[s] =
        Lanes(-factor * row.inverse[i] * row.score[i] / static_cast<float>(row.width));
  }
  for_vectors(row.width, [&](size_t at, size_t count) KERNEL_LAMBDA {
    const Lanes dm = load_some(dmix + at, count), w = load_some(gain + at, count);
    Lanes dw = dgain == nullptr ? Lanes::zero() : load_some(dgain + at, count);
#pragma GCC unroll 3
    for (size_t s = 0; s < N; ++s) {
      const Lanes x = load_some(row.source[first + s] + at, count);
      float* const to = row.dsource[first + s] + at;
      Lanes d = multiply_add(weight[s], dm, load_some(to, count));
      d = multiply_add(along_gain[s], w, d);
      store_some(multiply_add(along_source[s], x, d), to, count);
      dw = multiply_add(along_gain[s], x, dw);
    }
    if (dgain != nullptr) store_some(dw, dgain + at, count);
  });
}

void residual_grad_target(const ResidualGrad<float>& args, float* scratch) {
  const size_t width = args.width;
  float *const gain = scratch, *const mix = scratch + width, *const dmix = scratch + 2 * width;
  float* const dgain = args.dscore_norm == nullptr ? nullptr : scratch + 3 * width;
  for (size_t i = 0; i < width; ++i) gain[i] = args.score_norm[i] * args.score_proj[i];
  if (dgain != nullptr) std::fill_n(dgain, width, 0.0f);
  MixRow row;
  row.count = args.sources.size();
  row.width = width;
  for (size_t r = 0; r < args.rows; ++r) {
    for (size_t s = 0; s < row.count; ++s) {
      row.source[s] = args.sources[s].row(r);
      row.dsource[s] = args.dsources[s].row(r);
    }
    mix_sources(row, gain, args.eps, mix);
    norm_grad_row<false>({mix, args.norm, args.dout.row(r), dmix, args.dnorm, width}, args.eps);
    for_groups(row.count,
               [&]<size_t N>(size_t first) KERNEL_LAMBDA { source_dots<N>(row, first, dmix); });
    float dot_mix = 0;
    for (size_t s = 0; s < row.count; ++s) dot_mix += row.weight[s] * row.dot[s];
    for_groups(row.count, [&]<size_t N>(size_t first) KERNEL_LAMBDA {
      source_grads<N>(row, first, dot_mix, gain, dmix, dgain);
    });
  }
  for (size_t i = 0; dgain != nullptr && i < width; ++i) {
    args.dscore_norm[i] += dgain[i] * args.score_proj[i];
    args.dscore_proj[i] += dgain[i] * args.score_norm[i];
  }
}

void route_grad_target(const RouteGrad<float>& args) {
  constexpr float kWeightEps = 1e-20f;  // as in the forward
  for (size_t r = 0; r < args.rows; ++r) {
    const uint32_t* const expert = args.expert.data() + r * args.top_k;
    const float* const dweight = args.dweight + r * args.top_k;
    float *const to = args.dlogits.row(r), score[kMaxChosenExperts];
    float total = kWeightEps, dot = 0;
    for (size_t i = 0; i < args.top_k; ++i) score[i] = args.logits.row(r)[expert[i]];
    for_vectors(args.top_k, [&](size_t at, size_t count) KERNEL_LAMBDA {
      store_some(math::sigmoid(load_some(score + at, count)), score + at, count);
    });
    for (size_t i = 0; i < args.top_k; ++i) total += score[i];
    for (size_t i = 0; i < args.top_k; ++i) dot += dweight[i] * (score[i] / total);
    std::fill_n(to, args.experts, 0.0f);
    for (size_t i = 0; i < args.top_k; ++i) {
      const float share = args.renormalise ? score[i] / total : score[i];
      const float from = args.renormalise ? dweight[i] - dot : dweight[i];
      to[expert[i]] = args.scale * from * share * (1.0f - score[i]);
    }
  }
}

// logits <- exp(logits - most); returns their sum.
KERNEL_FN float exponentials(float* z, size_t width, float most) {
  LaneSum sum;
  for_lanes(width, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes e = math::exp(load_some(z + at, count) - Lanes(most));
    store_some(e, z + at, count);
    // The lanes past the end of the row hold exp(-most).
    sum.part[j] = sum.part[j] + (count == kWidth ? e : load_some(z + at, count));
  });
  return fold(sum);
}

double cross_entropy_target(const CrossEntropyGrad<float>& args) {
  double loss = 0;
  for (size_t r = 0; r < args.rows; ++r) {
    float* const z = args.logits.row(r);
    const float weight = args.weight[r];
    if (weight == 0 && args.loss == nullptr) {
      std::fill_n(z, args.width, 0.0f);
      continue;
    }
    Lanes top(z[0]);
    for_vectors(args.width, [&](size_t at, size_t count) KERNEL_LAMBDA {
      const Lanes value = count == kWidth ? Lanes::load(z + at) : Lanes(z[at]);
      top = select(top < value, value, top);
    });
    float lane[kWidth];
    top.store(lane);
    const size_t tail = args.width / kWidth * kWidth;
    const float most =
        std::max(*std::max_element(lane, lane + kWidth),
                 tail == args.width ? z[0] : *std::max_element(z + tail, z + args.width));
    const auto target = static_cast<size_t>(args.target[r]);
    const float at_target = z[target];
    const float sum = exponentials(z, args.width, most);
    const float one = math::log(Lanes(sum)).first() + (most - at_target);
    const Lanes factor(weight / sum);
    for_vectors(args.width, [&](size_t at, size_t count) KERNEL_LAMBDA {
      store_some(load_some(z + at, count) * factor, z + at, count);
    });
    z[target] -= weight;
    if (args.loss != nullptr) args.loss[r] = one;
    loss += double{weight} * double{one};
  }
  return loss;
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(norm_grad_target);
HWY_EXPORT(glu_grad_target);
HWY_EXPORT(residual_grad_target);
HWY_EXPORT(route_grad_target);
HWY_EXPORT(cross_entropy_target);

void norm_grad_rows(const RmsNormGrad<float>& args) {
  HWY_DYNAMIC_DISPATCH(norm_grad_target)(args);
}
void glu_grad_rows(const GluGrad<float>& args) { HWY_DYNAMIC_DISPATCH(glu_grad_target)(args); }
void residual_grad_rows(const ResidualGrad<float>& args, float* scratch) {
  VERIFY(args.sources.size() == args.dsources.size());
  VERIFY(!args.sources.empty() && args.sources.size() <= kMaxResidualSources);
  if (args.sources.size() > 1) return HWY_DYNAMIC_DISPATCH(residual_grad_target)(args, scratch);
  norm_grad_rows({args.rows, args.width, args.sources[0], args.dout, args.norm, args.eps,
                  args.dsources[0], true, args.dnorm});
}
void route_grad_rows(const RouteGrad<float>& args) {
  VERIFY(args.top_k <= kMaxChosenExperts);
  HWY_DYNAMIC_DISPATCH(route_grad_target)(args);
}
double cross_entropy_rows(const CrossEntropyGrad<float>& args) {
  return HWY_DYNAMIC_DISPATCH(cross_entropy_target)(args);
}
}  // namespace kernels
#endif
