#include "kernels/train/kda_grad.hpp"

#include <algorithm>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/kda_grad.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/train/kda_chunk.hpp"
#include "kernels/train/kda_scan.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

template <size_t W>
void run_head(const KdaHeadGrad& h) {
  load_conv_taps(h);
  prepare_tokens<W>(h);
  if (in_chunks(h.args)) {
    chunk_forward(h);
    chunk_reverse(h);
  } else {
    scan_forward(h);
    scan_reverse(h);
  }
  convolution_grad<W>(h);
}

void head_target(const KdaHeadGrad& head) {
  KdaHeadGrad h = head;
  h.rate = math::exp(Lanes(h.args.a_log[h.head])).first();
  switch (h.args.conv_width) {
    case 1:
      return run_head<1>(h);
    case 2:
      return run_head<2>(h);
    case 3:
      return run_head<3>(h);
    default:
      return run_head<4>(h);
  }
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
#include "kernels/base/verify.hpp"

namespace kernels {
namespace {

HWY_EXPORT(head_target);

// Hands out arrays one after the other; with a null scratch it only counts them. A few cache lines
// lie between two: arrays of a power of two would share the sets of the caches, token by token.
class Layout {
 public:
  explicit Layout(float* scratch) : scratch_(scratch) {}
  float* take(size_t floats) {
    const size_t at = used_;
    used_ += (floats + 15) / 16 * 16 + 5 * 16;
    return scratch_ == nullptr ? nullptr : scratch_ + at;
  }
  size_t used() const { return used_; }

 private:
  float* scratch_;
  size_t used_ = 0;
};

KdaHeadGrad lay_out(const KdaGrad<float>& args, const Sequence& sequence, size_t head,
                    Layout& layout) {
  KdaHeadGrad h{args, sequence, head, args.d};
  const size_t d = h.d, chunks = h.chunks(), tokens = chunks * kKdaGradChunk;
  for (float** rows :
       {&h.q, &h.k, &h.v, &h.slope[0], &h.slope[1], &h.slope[2], &h.log_decay, &h.dout, &h.decay})
    *rows = layout.take(tokens * d);
  for (float** each : {&h.beta, &h.q_inverse, &h.k_inverse}) *each = layout.take(tokens);
  h.state = layout.take((chunks + 1) * d * d);
  h.bounds = layout.take(chunks * 2 * d);
  h.pairs = layout.take(chunks * 2 * kKdaGradChunk * kKdaGradChunk);
  for (float** rows : {&h.dq, &h.dk, &h.dv, &h.dg}) *rows = layout.take(kKdaGradChunk * d);
  h.dbeta = layout.take(kKdaGradChunk);
  h.dstate = layout.take(d * d);
  h.taps = layout.take(3 * args.conv_width * d);
  h.dtaps = layout.take(3 * args.conv_width * d);
  h.zeros = layout.take(d);
  h.room = layout.take(in_chunks(args) ? chunk_room(d) : scan_room(d));
  return h;
}

}  // namespace

size_t kda_grad_scratch(const KdaGrad<float>& args, size_t tokens) {
  Layout layout(nullptr);
  lay_out(args, {0, tokens}, 0, layout);
  return layout.used();
}

void kda_grad_heads(const KdaGrad<float>& args, float* scratch) {
  VERIFY(args.conv_width >= 1 && args.conv_width <= kMaxConvWidth);
  VERIFY(args.d % 16 == 0);
  for (const Sequence& sequence : args.sequences) {
    for (size_t head = 0; sequence.count != 0 && head < args.heads; ++head) {
      Layout layout(scratch);
      const KdaHeadGrad h = lay_out(args, sequence, head, layout);
      std::fill_n(h.zeros, args.d, 0.0f);
      HWY_DYNAMIC_DISPATCH(head_target)(h);
    }
  }
}

}  // namespace kernels
#endif
