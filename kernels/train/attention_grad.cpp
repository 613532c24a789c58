#include "kernels/train/attention_grad.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/attention_grad.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/row_vectors.hpp"
#include "kernels/train/activation_grad.hpp"
#include "kernels/train/query_block.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// A row's scores -> probabilities of its `seen` keys; zero for the later ones.
KERNEL_FN void softmax_row(float* p, size_t seen, size_t keys, float scale) {
  float most = p[0];
  const size_t whole = seen / kWidth * kWidth;
  Lanes top(most);
  for (size_t at = 0; at < whole; at += kWidth) {
    const Lanes value = Lanes::load(p + at);
    top = select(top < value, value, top);
  }
  float lane[kWidth];
  top.store(lane);
  for (const float value : lane) most = std::max(most, value);
  for (size_t at = whole; at < seen; ++at) most = std::max(most, p[at]);
  std::fill(p + seen, p + keys, -std::numeric_limits<float>::infinity());
  const Lanes factor(scale), offset(most * -scale);
  LaneSum sum;
  for_lanes(keys, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
    const Lanes e = math::exp(multiply_add(load_some(p + at, count), factor, offset));
    store_some(e, p + at, count);
    sum.part[j] = sum.part[j] + (count == kWidth ? e : load_some(p + at, count));
  });
  const Lanes inverse(1.0f / fold(sum));
  for_vectors(seen, [&](size_t at, size_t count) KERNEL_LAMBDA {
    store_some(load_some(p + at, count) * inverse, p + at, count);
  });
}

void softmax_target(const QueryBlock& b) {
  for (size_t r = 0; r < b.rows; ++r)
    softmax_row(b.p.row(r), std::min(b.first + r + 1, b.keys), b.keys, b.scale);
}

// From the outputs: the gate's gradient, the gradient of what the gate multiplied, and that dotted
// with the output.
void gate_target(const QueryBlock& b) {
  for (size_t r = 0; r < b.rows; ++r) {
    const float *const out = b.out.row(r), *const dgated = b.dgated.row(r);
    float* const dout = b.dout.row(r);
    LaneSum dot;
    for_lanes(b.d_v, [&](size_t at, size_t count, size_t j) KERNEL_LAMBDA {
      const Lanes o = load_some(out + at, count);
      Lanes d = load_some(dgated + at, count);
      if (b.gate.data != nullptr) {
        const auto gate = sigmoid_pair(load_some(b.gate.row(r) + at, count));
        d = d * gate.s;
        store_some(d * o * gate.rest, b.dgate.row(r) + at, count);
      }
      store_some(d, dout + at, count);
      dot.part[j] = multiply_add(d, o, dot.part[j]);
    });
    b.dot[r] = fold(dot);
  }
}

// dp <- p (dp - dot) scale
void score_grad_target(const QueryBlock& b) {
  for (size_t r = 0; r < b.rows; ++r) {
    const float* const p = b.p.row(r);
    float* const dp = b.dp.row(r);
    const Lanes dot(b.dot[r]), scale(b.scale);
    for_vectors(b.keys, [&](size_t at, size_t count) KERNEL_LAMBDA {
      const Lanes d = load_some(dp + at, count) - dot;
      store_some(load_some(p + at, count) * scale * d, dp + at, count);
    });
  }
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
#include <cmath>

#include "kernels/train/product.hpp"

namespace kernels {
namespace {

HWY_EXPORT(softmax_target);
HWY_EXPORT(gate_target);
HWY_EXPORT(score_grad_target);

constexpr size_t kQueries = 48;  // of a block

// Rows of p start at cache lines, which do not all share the sets of L1.
size_t padded_keys(size_t tokens) { return (tokens + 15) / 16 * 16 + 16; }

// One head of one sequence.
struct HeadGrad {
  const AttentionGrad<float>& args;
  Sequence sequence;
  size_t head;
  float* scratch;
  float* product_scratch;

  size_t d_key() const { return args.d_nope + args.d_rope; }
  template <class Real>
  Grid<Real> part(const Grid<Real>& whole, size_t column) const {
    return whole.data == nullptr ? whole : whole.from(sequence.begin).columns(column);
  }
  // c[m, n] (+)= op(a) op(b)
  void multiply_into(Grid<float> c, size_t m, size_t n, size_t k, Grid<const float> a,
                     Grid<const float> b, bool a_transposed, bool b_transposed, bool add) const {
    multiply({m, n, k, a, b, a_transposed, b_transposed, c, add}, product_scratch);
  }

  void run() const {
    const size_t d = d_key(), count = sequence.count;
    const Grid<float> keys = {scratch, d}, dkeys = {scratch + count * d, d};
    const Grid<const float> kv = part(args.kv, head * (args.d_nope + args.d_v));
    for (size_t t = 0; t < count; ++t) {
      std::copy_n(kv.row(t), args.d_nope, keys.row(t));
      std::copy_n(args.k_rope.row(sequence.begin + t), args.d_rope, keys.row(t) + args.d_nope);
    }
    std::fill_n(dkeys.data, count * d, 0.0f);
    const Grid<float> dkv = part(args.dkv, head * (args.d_nope + args.d_v));
    for (size_t t = 0; t < count; ++t) std::fill_n(dkv.row(t) + args.d_nope, args.d_v, 0.0f);
    for (size_t first = 0; first < count; first += kQueries)
      block(first, std::min(kQueries, count - first), keys, dkeys);
    for (size_t t = 0; t < count; ++t) {
      std::copy_n(dkeys.row(t), args.d_nope, dkv.row(t));
      float* const rope = args.dk_rope.row(sequence.begin + t);
      const float* const from = dkeys.row(t) + args.d_nope;
      for (size_t i = 0; i < args.d_rope; ++i) rope[i] = head == 0 ? from[i] : rope[i] + from[i];
    }
  }

  void block(size_t first, size_t rows, Grid<float> keys, Grid<float> dkeys) const {
    const size_t d = d_key(), ld = padded_keys(sequence.count), d_v = args.d_v;
    const size_t value = head * d_v, kv = head * (args.d_nope + d_v) + args.d_nope;
    float* const p = keys.data + 2 * sequence.count * d;
    float* const out = p + 2 * kQueries * ld;
    QueryBlock b;
    b.first = first, b.rows = rows, b.keys = first + rows, b.d_v = d_v;
    b.scale = 1.0f / std::sqrt(static_cast<float>(d));
    b.p = {p, ld};
    b.dp = {p + kQueries * ld, ld};
    b.out = {out, d_v};
    b.dout = {out + kQueries * d_v, d_v};
    b.dot = out + 2 * kQueries * d_v;
    b.dgated = part(args.dout, value).from(first);
    if (args.gate.data != nullptr) {
      b.gate = part(args.gate, value).from(first);
      b.dgate = part(args.dgate, value).from(first);
    }
    const Grid<const float> q = part(args.q, head * d).from(first), v = part(args.kv, kv);
    multiply_into(b.p, rows, b.keys, d, q, keys, false, true, false);
    HWY_DYNAMIC_DISPATCH(softmax_target)(b);
    multiply_into(b.out, rows, d_v, b.keys, b.p, v, false, false, false);
    HWY_DYNAMIC_DISPATCH(gate_target)(b);
    multiply_into(b.dp, rows, b.keys, d_v, b.dout, v, false, true, false);
    HWY_DYNAMIC_DISPATCH(score_grad_target)(b);
    multiply_into(part(args.dq, head * d).from(first), rows, d, b.keys, b.dp, keys, false, false,
                  false);
    multiply_into(dkeys, b.keys, d, rows, b.dp, q, true, false, true);
    multiply_into(part(args.dkv, kv), b.keys, d_v, rows, b.p, b.dout, true, false, true);
  }
};

}  // namespace

size_t attention_grad_scratch(const AttentionGrad<float>& args, size_t tokens) {
  return 2 * tokens * (args.d_nope + args.d_rope) + 2 * kQueries * padded_keys(tokens) +
         2 * kQueries * args.d_v + kQueries;
}

void attention_grad_heads(const AttentionGrad<float>& args, float* scratch,
                          float* product_scratch) {
  for (const Sequence& sequence : args.sequences)
    for (size_t head = 0; head < args.heads; ++head)
      HeadGrad{args, sequence, head, scratch, product_scratch}.run();
}

}  // namespace kernels
#endif
