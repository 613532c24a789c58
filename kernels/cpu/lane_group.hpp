// Several vectors as one number: a rule of kernels/*.hpp computes them side by side, so that one
// vector's chain of operations fills the waits of another's. Included once per SIMD target.
#if defined(KERNELS_CPU_LANE_GROUP_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_LANE_GROUP_HPP_
#else
#define KERNELS_CPU_LANE_GROUP_HPP_
#endif

#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN

// N values of type T, and what makes one of them from values at the same place.
template <class T, size_t N>
struct Group {
  T x[N];

  template <class Fn>
  static KERNEL_FN Group make(const Fn& fn) {
    Group group;
#pragma GCC unroll 8
    for (size_t i = 0; i < N; ++i) group.x[i] = fn(i);
    return group;
  }
};

template <size_t N>
struct LaneGroup : Group<Lanes, N> {
  using Base = Group<Lanes, N>;
  LaneGroup() = default;
  KERNEL_FN LaneGroup(const Base& group) : Base(group) {}
  KERNEL_FN explicit LaneGroup(float value)
      : Base(Base::make([&](size_t) KERNEL_LAMBDA { return Lanes(value); })) {}
  KERNEL_FN explicit LaneGroup(Lanes value)
      : Base(Base::make([&](size_t) KERNEL_LAMBDA { return value; })) {}
  static KERNEL_FN LaneGroup load(const float* p) {
    return Base::make([&](size_t i) KERNEL_LAMBDA { return Lanes::load(p + i * kWidth); });
  }
  KERNEL_FN void store(float* p) const {
#pragma GCC unroll 8
    for (size_t i = 0; i < N; ++i) this->x[i].store(p + i * kWidth);
  }
};
template <size_t N>
using WordGroup = Group<Words, N>;
template <size_t N>
using MaskGroup = Group<LaneMask, N>;

template <size_t N>
KERNEL_FN LaneGroup<N> operator+(const LaneGroup<N>& a, const LaneGroup<N>& b) {
  return Group<Lanes, N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] + b.x[i]; });
}
template <size_t N>
KERNEL_FN LaneGroup<N> operator-(const LaneGroup<N>& a, const LaneGroup<N>& b) {
  return Group<Lanes, N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] - b.x[i]; });
}
template <size_t N>
KERNEL_FN LaneGroup<N> operator*(const LaneGroup<N>& a, const LaneGroup<N>& b) {
  return Group<Lanes, N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] * b.x[i]; });
}
template <size_t N>
KERNEL_FN LaneGroup<N> operator/(const LaneGroup<N>& a, const LaneGroup<N>& b) {
  return Group<Lanes, N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] / b.x[i]; });
}
template <size_t N>
KERNEL_FN LaneGroup<N> multiply_add(const LaneGroup<N>& a, const LaneGroup<N>& b,
                                    const LaneGroup<N>& c) {
  return Group<Lanes, N>::make(
      [&](size_t i) KERNEL_LAMBDA { return multiply_add(a.x[i], b.x[i], c.x[i]); });
}
template <size_t N>
KERNEL_FN MaskGroup<N> operator<(const LaneGroup<N>& a, const LaneGroup<N>& b) {
  return MaskGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] < b.x[i]; });
}
template <size_t N>
KERNEL_FN LaneGroup<N> select(const MaskGroup<N>& mask, const LaneGroup<N>& yes,
                              const LaneGroup<N>& no) {
  return Group<Lanes, N>::make(
      [&](size_t i) KERNEL_LAMBDA { return select(mask.x[i], yes.x[i], no.x[i]); });
}
template <size_t N>
KERNEL_FN WordGroup<N> to_bits(const LaneGroup<N>& a) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return to_bits(a.x[i]); });
}
template <size_t N>
KERNEL_FN LaneGroup<N> from_bits(const WordGroup<N>& a) {
  return Group<Lanes, N>::make([&](size_t i) KERNEL_LAMBDA { return from_bits(a.x[i]); });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator+(const WordGroup<N>& a, uint32_t b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] + b; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator-(const WordGroup<N>& a, uint32_t b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] - b; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator-(const WordGroup<N>& a, const WordGroup<N>& b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] - b.x[i]; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator&(const WordGroup<N>& a, uint32_t b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] & b; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator|(const WordGroup<N>& a, uint32_t b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] | b; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator|(const WordGroup<N>& a, const WordGroup<N>& b) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] | b.x[i]; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator<<(const WordGroup<N>& a, int bits) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] << bits; });
}
template <size_t N>
KERNEL_FN WordGroup<N> operator>>(const WordGroup<N>& a, int bits) {
  return WordGroup<N>::make([&](size_t i) KERNEL_LAMBDA { return a.x[i] >> bits; });
}

KERNEL_NAMESPACE_END
#endif
