#include "kernels/train/optimizer.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/norm.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// To bf16, nearest and ties to even, and back. A NaN may become infinite: steps with one are
// skipped before they come here.
KERNEL_FN Lanes rounded_to_half(Lanes x) {
  const Words bits = to_bits(x);
  const Words odd = (bits >> 16) & 1u;
  return from_bits(Words{hn::Add(bits.v, (odd + 0x7fffu).v)} & 0xffff0000u);
}

KERNEL_FN void store_value(Lanes x, bool half, float* to, size_t count) {
  store_some(half ? rounded_to_half(x) : x, to, count);
}

double sum_shards_target(std::span<float* const> shards, size_t count) {
  constexpr size_t kSquares = 4096;
  double total = 0;
  for (size_t begin = 0; begin < count; begin += kSquares) {
    const size_t end = std::min(count, begin + kSquares);
    LaneSum squares;
    for (size_t i = begin, j = 0; i < end; i += kWidth, j = (j + 1) % kPer16) {
      const size_t left = std::min(kWidth, end - i);
      Lanes sum = load_some(shards[0] + i, left);
      for (size_t s = 1; s < shards.size(); ++s) {
        sum = sum + load_some(shards[s] + i, left);
        store_some(Lanes::zero(), shards[s] + i, left);
      }
      store_some(sum, shards[0] + i, left);
      squares.part[j] = multiply_add(sum, sum, squares.part[j]);
    }
    float lane[16];
    squares.store(lane);
    total += static_cast<double>(fold_lanes(lane));
  }
  return total;
}

void adamw_target(const kernels::AdamW& step, const kernels::AdamWArrays& a) {
  const Lanes beta1(step.beta1), beta2(step.beta2), scale(step.grad_scale);
  const Lanes rest1(1.0f - step.beta1), rest2(1.0f - step.beta2);
  const Lanes rate(step.rate / step.correction1), root(1.0f / step.correction2);
  const Lanes epsilon(step.epsilon), keep(1.0f - step.rate * step.decay);
  for (size_t i = 0; i < a.count; i += kWidth) {
    const size_t left = std::min(kWidth, a.count - i);
    const Lanes grad = load_some(a.grad + i, left) * scale;
    const Lanes first = multiply_add(beta1, load_some(a.first + i, left), rest1 * grad);
    const Lanes second = multiply_add(beta2, load_some(a.second + i, left), rest2 * grad * grad);
    const Lanes move = rate * first / (square_root(second * root) + epsilon);
    const Lanes master = load_some(a.master + i, left) * keep - move;
    store_some(first, a.first + i, left);
    store_some(second, a.second + i, left);
    store_some(Lanes::zero(), a.grad + i, left);
    store_some(master, a.master + i, left);
    store_value(master, a.half, a.value + i, left);
  }
}

void round_target(const float* master, float* value, size_t count, bool half) {
  for (size_t i = 0; i < count; i += kWidth) {
    const size_t left = std::min(kWidth, count - i);
    store_value(load_some(master + i, left), half, value + i, left);
  }
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
namespace kernels {
HWY_EXPORT(sum_shards_target);
HWY_EXPORT(adamw_target);
HWY_EXPORT(round_target);

double sum_shards(std::span<float* const> shards, size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_shards_target)(shards, count);
}

void adamw_step(const AdamW& step, const AdamWArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(adamw_target)(step, arrays);
}

void round_parameters(const float* master, float* value, size_t count, bool half) {
  HWY_DYNAMIC_DISPATCH(round_target)(master, value, count, half);
}

}  // namespace kernels
#endif
