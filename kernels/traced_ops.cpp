#include "kernels/traced_ops.hpp"

#include <utility>

#include "kernels/base/trace_events.hpp"
#include "kernels/forwarding_ops.hpp"

namespace kernels {
namespace {

class TracedOps final : public ForwardingOps {
 public:
  explicit TracedOps(std::unique_ptr<Ops> inner)
      : ForwardingOps(*inner), owned_(std::move(inner)) {}

  MatrixPtr pack(const MatrixView& view) override {
    const TraceSpan span("pack", {{"n", view.n}, {"k", view.k}});
    return ForwardingOps::pack(view);
  }
  void matmul(Rows x, const Matrix& w, MutableRows y, size_t rows) override {
    const TraceSpan span("matmul", {{"rows", rows}, {"n", w.n()}, {"k", w.k()}});
    ForwardingOps::matmul(x, w, y, rows);
  }
  void embed(const MatrixView& table, std::span<const int32_t> ids, MutableRows out) override {
    const TraceSpan span("embed", {{"rows", ids.size()}, {"width", table.k}});
    ForwardingOps::embed(table, ids, out);
  }
  void rms_norm(Rows x, const float* weight, float eps, MutableRows y, size_t rows,
                size_t width) override {
    const TraceSpan span("rms_norm", {{"rows", rows}, {"width", width}});
    ForwardingOps::rms_norm(x, weight, eps, y, rows, width);
  }
  void add(Rows x, MutableRows y, size_t rows, size_t width) override {
    const TraceSpan span("add", {{"rows", rows}, {"width", width}});
    ForwardingOps::add(x, y, rows, width);
  }
  void glu(const ActivationSpec& act, Rows gate, Rows up, MutableRows out, size_t rows,
           size_t width) override {
    const TraceSpan span("glu", {{"rows", rows}, {"width", width}});
    ForwardingOps::glu(act, gate, up, out, rows, width);
  }
  void residual_scores(Rows x, std::span<const float* const> gains, float eps, MutableRows scores,
                       size_t rows, size_t width) override {
    const TraceSpan span("residual_scores",
                         {{"rows", rows}, {"width", width}, {"gains", gains.size()}});
    ForwardingOps::residual_scores(x, gains, eps, scores, rows, width);
  }
  void residual_mix(const ResidualArgs& args, size_t rows) override {
    const TraceSpan span(
        "residual_mix", {{"rows", rows}, {"width", args.width}, {"sources", args.bank.size() + 1}});
    ForwardingOps::residual_mix(args, rows);
  }
  void kda(const KdaArgs& args, const BatchView& batch) override {
    const TraceSpan span("kda", {{"rows", batch.row_count},
                                 {"sequences", batch.segments.size()},
                                 {"heads", args.heads},
                                 {"d", args.d}});
    ForwardingOps::kda(args, batch);
  }
  void mla(const MlaArgs& args, const BatchView& batch) override {
    uint64_t positions = 0;
    for (const Segment& segment : batch.segments) positions += segment.position + segment.row_count;
    const TraceSpan span("mla", {{"rows", batch.row_count},
                                 {"sequences", batch.segments.size()},
                                 {"heads", args.heads},
                                 {"positions", positions}});
    ForwardingOps::mla(args, batch);
  }
  void route(const RouteArgs& args, size_t rows, Routing& out) override {
    const TraceSpan span("route",
                         {{"rows", rows}, {"experts", args.experts}, {"top_k", args.top_k}});
    ForwardingOps::route(args, rows, out);
  }
  void experts(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
               const ActivationSpec& act, MutableRows out, size_t rows) override {
    const TraceSpan span("experts",
                         {{"rows", rows}, {"experts", weights.size()}, {"top_k", routing.top_k}});
    ForwardingOps::experts(z, weights, routing, act, out, rows);
  }

 private:
  std::unique_ptr<Ops> owned_;
};

}  // namespace

std::unique_ptr<Ops> make_traced_ops(std::unique_ptr<Ops> inner) {
  return std::make_unique<TracedOps>(std::move(inner));
}

}  // namespace kernels
