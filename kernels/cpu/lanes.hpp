// SIMD number types of the current Highway target: Lanes (floats) and Words (their bits). Included
// once per target, after hwy/highway.h; gives the rules in kernels/*.hpp their operations.
#if defined(KERNELS_CPU_LANES_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_LANES_HPP_
#else
#define KERNELS_CPU_LANES_HPP_
#endif

#ifndef KERNELS_PER_TARGET
#define KERNELS_PER_TARGET
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_fn.hpp"

KERNEL_NAMESPACE_BEGIN
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 8>;
using WordTag = hn::RebindToUnsigned<FloatTag>;
constexpr size_t kWidth = hn::MaxLanes(FloatTag());  // 8 with AVX2, else 4
constexpr size_t kPer16 = 16 / kWidth;               // vectors in a panel of 16

struct Words {
  hn::Vec<WordTag> v;
};
KERNEL_FN Words word(uint32_t x) { return {hn::Set(WordTag(), x)}; }
KERNEL_FN Words operator+(Words a, uint32_t b) { return {hn::Add(a.v, word(b).v)}; }
KERNEL_FN Words operator-(Words a, uint32_t b) { return {hn::Sub(a.v, word(b).v)}; }
KERNEL_FN Words operator-(Words a, Words b) { return {hn::Sub(a.v, b.v)}; }
KERNEL_FN Words operator&(Words a, uint32_t b) { return {hn::And(a.v, word(b).v)}; }
KERNEL_FN Words operator|(Words a, uint32_t b) { return {hn::Or(a.v, word(b).v)}; }
KERNEL_FN Words operator|(Words a, Words b) { return {hn::Or(a.v, b.v)}; }
KERNEL_FN Words operator<<(Words a, int bits) { return {hn::ShiftLeftSame(a.v, bits)}; }
KERNEL_FN Words operator>>(Words a, int bits) { return {hn::ShiftRightSame(a.v, bits)}; }

struct Lanes {
  hn::Vec<FloatTag> v;

  Lanes() = default;
  KERNEL_FN Lanes(hn::Vec<FloatTag> vector) : v(vector) {}
  KERNEL_FN explicit Lanes(float x) : v(hn::Set(FloatTag(), x)) {}
  static KERNEL_FN Lanes zero() { return hn::Zero(FloatTag()); }
  static KERNEL_FN Lanes load(const float* p) { return hn::LoadU(FloatTag(), p); }
  KERNEL_FN void store(float* p) const { hn::StoreU(v, FloatTag(), p); }
  KERNEL_FN float first() const { return hn::GetLane(v); }
};
struct LaneMask {
  hn::Mask<FloatTag> m;
};

KERNEL_FN Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
KERNEL_FN Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
KERNEL_FN Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
KERNEL_FN Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
KERNEL_FN LaneMask operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
KERNEL_FN Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return hn::MulAdd(a.v, b.v, c.v); }
KERNEL_FN Lanes square_root(Lanes x) { return hn::Sqrt(x.v); }
KERNEL_FN Lanes select(LaneMask mask, Lanes yes, Lanes no) {
  return hn::IfThenElse(mask.m, yes.v, no.v);
}
KERNEL_FN Words to_bits(Lanes x) { return {hn::BitCast(WordTag(), x.v)}; }
KERNEL_FN Lanes from_bits(Words x) { return hn::BitCast(FloatTag(), x.v); }

// The first `count` (<= kWidth) elements, the rest zero: tails run through the same instructions as
// full vectors.
KERNEL_FN Lanes load_some(const float* p, size_t count) {
  if (count >= kWidth) return Lanes::load(p);
  float padded[kWidth] = {};
  for (size_t i = 0; i < count; ++i) padded[i] = p[i];
  return Lanes::load(padded);
}
KERNEL_FN void store_some(Lanes x, float* p, size_t count) {
  if (count >= kWidth) return x.store(p);
  float padded[kWidth];
  x.store(padded);
  for (size_t i = 0; i < count; ++i) p[i] = padded[i];
}

// A sum over a row in the 16 lanes of kernels/norm.hpp.
struct LaneSum {
  Lanes part[kPer16];

  KERNEL_FN LaneSum() {
    for (size_t i = 0; i < kPer16; ++i) part[i] = Lanes::zero();
  }
  // The lane sums themselves, for fold_lanes.
  KERNEL_FN void store(float* lane /* [16] */) const {
    for (size_t i = 0; i < kPer16; ++i) part[i].store(lane + i * kWidth);
  }
};

KERNEL_NAMESPACE_END
#endif
