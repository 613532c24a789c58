// Ops that pass every call to another Ops: the base of those that only watch.
#pragma once

#include "kernels/ops.hpp"

namespace kernels {

// Invariant: adds no arithmetic, so results are those of `inner`, which must outlive this.
class ForwardingOps : public Ops {
 public:
  explicit ForwardingOps(Ops& inner) : inner_(inner) {}

  MatrixPtr pack(const MatrixView& view) override { return inner_.pack(view); }
  void matmul(Rows x, const Matrix& w, MutableRows y, size_t rows) override {
    inner_.matmul(x, w, y, rows);
  }
  void embed(const MatrixView& table, std::span<const int32_t> ids, MutableRows out) override {
    inner_.embed(table, ids, out);
  }
  void rms_norm(Rows x, const float* weight, float eps, MutableRows y, size_t rows,
                size_t width) override {
    inner_.rms_norm(x, weight, eps, y, rows, width);
  }
  void add(Rows x, MutableRows y, size_t rows, size_t width) override {
    inner_.add(x, y, rows, width);
  }
  void glu(const ActivationSpec& act, Rows gate, Rows up, MutableRows out, size_t rows,
           size_t width) override {
    inner_.glu(act, gate, up, out, rows, width);
  }
  void residual_scores(Rows x, std::span<const float* const> gains, float eps, MutableRows scores,
                       size_t rows, size_t width) override {
    inner_.residual_scores(x, gains, eps, scores, rows, width);
  }
  void residual_mix(const ResidualArgs& args, size_t rows) override {
    inner_.residual_mix(args, rows);
  }
  void kda(const KdaArgs& args, const BatchView& batch) override { inner_.kda(args, batch); }
  void mla(const MlaArgs& args, const BatchView& batch) override { inner_.mla(args, batch); }
  void route(const RouteArgs& args, size_t rows, Routing& out) override {
    inner_.route(args, rows, out);
  }
  void experts(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
               const ActivationSpec& act, MutableRows out, size_t rows) override {
    inner_.experts(z, weights, routing, act, out, rows);
  }

 private:
  Ops& inner_;
};

}  // namespace kernels
