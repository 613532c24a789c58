// CPU backend: cuts every operation over rows, columns or heads and runs the pieces on the pool.
// The arithmetic is in the kernels this calls; nothing here adds any.
#include "kernels/ops.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"
#include "kernels/cpu/experts.hpp"
#include "kernels/cpu/kda.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/matrix.hpp"
#include "kernels/cpu/mla_engine.hpp"
#include "kernels/cpu/panel_memory.hpp"
#include "kernels/cpu/route.hpp"
#include "kernels/cpu/row_loop.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace kernels {
namespace cpu {
namespace {

constexpr size_t kColumnChunk = 2048;  // columns of one row-wise task
constexpr size_t kGluCost = 8;      // an element of glu takes as long as reading this many floats
constexpr size_t kMaxSources = 64;  // attention-residual bank rows plus the prefix

void embed_row(const MatrixView& table, size_t id, float* out) {
  for (size_t i = 0; i < table.k; ++i) {
    const size_t at = id * table.stride_n + i * table.stride_k;
    switch (table.dtype) {
      case DType::kBF16:
        out[i] = bf16_to_float(static_cast<const uint16_t*>(table.data)[at]);
        break;
      case DType::kF16:
        out[i] = f16_to_float(static_cast<const uint16_t*>(table.data)[at]);
        break;
      default:
        out[i] = static_cast<const float*>(table.data)[at];
        break;
    }
  }
}

class CpuOps final : public Ops {
 public:
  explicit CpuOps(unsigned threads)
      : pool_(threads),
        matmul_(pool_),
        experts_(pool_, matmul_),
        mla_(pool_, matmul_),
        scratch_(threads) {}

  MatrixPtr pack(const MatrixView& view) override {
    return std::make_unique<PanelMatrix>(view, panels_, pool_);
  }

  void matmul(Rows x, const Matrix& w, MutableRows y, size_t rows) override {
    if (rows == 0) return;
    const RowSource source = {x, nullptr, rows, w.k()};
    const Product product = {&w, matmul_.pack({&source, 1})[0], y};
    matmul_.run({&product, 1});
  }

  void embed(const MatrixView& table, std::span<const int32_t> ids, MutableRows out) override {
    VERIFY(table.dtype == DType::kBF16 || table.dtype == DType::kF16 || table.dtype == DType::kF32);
    for_rows(ids.size(), table.k, [&](size_t row) {
      VERIFY(ids[row] >= 0 && static_cast<size_t>(ids[row]) < table.n);
      embed_row(table, static_cast<size_t>(ids[row]), out.data + row * out.ld);
    });
  }

  void rms_norm(Rows x, const float* weight, float eps, MutableRows y, size_t rows,
                size_t width) override {
    for_rows(rows, width, [&](size_t row) {
      rms_norm_row(x.data + row * x.ld, weight, eps, y.data + row * y.ld, width);
    });
  }

  void add(Rows x, MutableRows y, size_t rows, size_t width) override {
    for_columns(rows, width, 1, [&](size_t row, size_t column, size_t count) {
      add_row(x.data + row * x.ld + column, y.data + row * y.ld + column, count);
    });
  }

  void glu(const ActivationSpec& act, Rows gate, Rows up, MutableRows out, size_t rows,
           size_t width) override {
    for_columns(rows, width, kGluCost, [&](size_t row, size_t column, size_t count) {
      glu_row(act, gate.data + row * gate.ld + column, up.data + row * up.ld + column,
              out.data + row * out.ld + column, count);
    });
  }

  void residual_scores(Rows x, std::span<const float* const> gains, float eps, MutableRows scores,
                       size_t rows, size_t width) override {
    for_rows(rows, width * (gains.size() + 1), [&](size_t row) {
      residual_scores_row(x.data + row * x.ld, gains, eps, scores.data + row * scores.ld, width);
    });
  }

  void residual_mix(const ResidualArgs& args, size_t rows) override {
    const size_t banked = args.bank.size();
    VERIFY(banked < kMaxSources);
    VERIFY(args.bank_scores.size() == banked);
    for_rows(rows, args.width * (banked + 3), [&](size_t row) {
      const float* sources[kMaxSources];
      float score[kMaxSources];
      for (size_t j = 0; j < banked; ++j) {
        sources[j] = args.bank[j].data + row * args.bank[j].ld;
        score[j] = args.bank_scores[j].data[row * args.bank_scores[j].ld];
      }
      float* prefix = args.prefix.data + row * args.prefix.ld;
      sources[banked] = prefix;
      const Rows& sublayer = args.sublayer;
      residual_mix_row({prefix,
                        sublayer.data == nullptr ? nullptr : sublayer.data + row * sublayer.ld,
                        args.restart,
                        {sources, banked + 1},
                        args.gain,
                        args.norm,
                        args.eps,
                        args.out.data + row * args.out.ld,
                        score},
                       args.width);
    });
  }

  void kda(const KdaArgs& args, const BatchView& batch) override;
  void mla(const MlaArgs& args, const BatchView& batch) override { mla_.run(args, batch); }

  void route(const RouteArgs& args, size_t rows, Routing& out) override {
    VERIFY(args.top_k >= 1 && args.top_k <= args.experts);
    out.top_k = args.top_k;
    out.expert.resize(rows * args.top_k);
    out.weight.resize(rows * args.top_k);
    for_rows_on_thread(rows, args.experts * 4, [&](size_t row, unsigned thread) {
      float* score = scratch_[thread].reserve(args.experts);
      sigmoid_row(args.logits.data + row * args.logits.ld, score, args.experts);
      choose_experts(args, score, out.expert.data() + row * args.top_k,
                     out.weight.data() + row * args.top_k);
    });
  }

  void experts(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
               const ActivationSpec& act, MutableRows out, size_t rows) override {
    if (rows != 0) experts_.run(z, weights, routing, act, out, rows);
  }

 private:
  template <class Fn>
  void for_rows_on_thread(size_t rows, size_t floats_per_row, const Fn& fn) {
    cpu::for_rows(pool_, rows, floats_per_row, fn);
  }
  template <class Fn>
  void for_rows(size_t rows, size_t floats_per_row, const Fn& fn) {
    cpu::for_rows(pool_, rows, floats_per_row, [&](size_t row, unsigned) { fn(row); });
  }

  // fn(row, column, count): for element-wise work, which may also be cut across a row. An element
  // costs as much as reading `cost` floats.
  template <class Fn>
  void for_columns(size_t rows, size_t width, size_t cost, const Fn& fn) {
    const size_t most = kColumnChunk / cost, chunks = (width + most - 1) / most;
    for_rows(rows * chunks, std::min(width, most) * cost, [&](size_t task) {
      const size_t column = task % chunks * most;
      fn(task / chunks, column, std::min(most, width - column));
    });
  }

  ThreadPool pool_;
  PanelMemory panels_;
  MatmulEngine matmul_;
  ExpertEngine experts_;
  MlaEngine mla_;
  std::vector<Scratch> scratch_;  // one per thread
};

void CpuOps::kda(const KdaArgs& args, const BatchView& batch) {
  VERIFY(args.d % 16 == 0);
  VERIFY(args.heads > 0);
  VERIFY(args.conv_width >= 1 && args.conv_width <= kKdaMaxTaps);
  for (const KdaArgs::Capture& capture : args.captures) {
    for (const Segment& segment : batch.segments) VERIFY(capture.slot != segment.slot);
  }
  // Single tokens: several heads to a task, which fetches the next one's inputs meanwhile.
  const size_t sequences = batch.segments.size(), all = sequences * args.heads;
  const size_t shared = std::clamp<size_t>(all / (pool_.size() * 2), 1, args.heads);
  const size_t step = batch.row_count == sequences ? shared : 1;
  const size_t parts = (args.heads + step - 1) / step, floats = kda_token_floats(args.d);
  pool_.parallel_for(sequences * parts, [&](size_t task, unsigned thread) {
    const Segment& segment = batch.segments[task / parts];
    const size_t head = task % parts * step;
    if (segment.row_count != 0) {
      kda_heads(args, segment, {head, std::min(head + step, args.heads)},
                scratch_[thread].reserve(floats));
    }
  });
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Ops> make_cpu_ops(unsigned threads) {
  return std::make_unique<cpu::CpuOps>(threads);
}

const char* cpu_target_name() { return cpu::rows_target_name(); }

}  // namespace kernels
