// One head of a KDA layer: where its part of the arguments and of the scratch lies. Included once
// per SIMD target.
#if defined(KERNELS_CPU_KDA_HEAD_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef KERNELS_CPU_KDA_HEAD_HPP_
#else
#define KERNELS_CPU_KDA_HEAD_HPP_
#endif

#include "kernels/cpu/kda.hpp"
#include "kernels/cpu/lanes.hpp"
// lanes.hpp comes first: it makes the rules compile for this target.
#include "kernels/kda.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

using cpu::KdaTokens;

// One head's view of the arguments and of the scratch.
struct Head : KdaTokens {
  const KdaArgs& args;
  const Segment& segment;
  size_t index;
  size_t width;  // heads * d
  float rate;    // exp(A_log)

  Head(const KdaArgs& a, const Segment& s, size_t head, float* scratch)
      : KdaTokens(scratch, a.d),
        args(a),
        segment(s),
        index(head),
        width(a.heads * a.d),
        rate(math::exp(Lanes(a.a_log[head])).first()) {}

  float* window(uint32_t slot) const {  // [conv_width - 1][3 * width]
    return reinterpret_cast<float*>(args.state_base + slot * args.slot_stride + args.conv_offset);
  }
  float* state(uint32_t slot) const {  // [d / tile][d][tile] of this head
    return reinterpret_cast<float*>(args.state_base + slot * args.slot_stride +
                                    args.recurrent_offset) +
           index * d * d;
  }
  // Raw projections of the segment's row `row`; before row 0 the window continues backwards.
  const float* raw(long row) const {
    if (row >= 0)
      return args.qkv.data + (segment.row_begin + static_cast<size_t>(row)) * args.qkv.ld;
    return window(segment.slot) +
           (static_cast<long>(args.conv_width) - 1 + row) * static_cast<long>(3 * width);
  }
};

}  // namespace
KERNEL_NAMESPACE_END
#endif
