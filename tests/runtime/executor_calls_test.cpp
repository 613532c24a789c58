// The count of our executor's operations against the executor itself.
#include "runtime/sim/executor_calls.hpp"

#include <catch2/catch.hpp>

#include "kernels/forwarding_ops.hpp"
#include "runtime/bench_engine.hpp"
#include "runtime/weights.hpp"
#include "tests/support/random_model.hpp"

namespace {

class CountingOps final : public kernels::ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;
  void matmul(kernels::Rows x, const kernels::Matrix& w, kernels::MutableRows y,
              size_t rows) override {
    ++calls.matmul;
    ForwardingOps::matmul(x, w, y, rows);
  }
  void embed(const kernels::MatrixView& table, std::span<const int32_t> ids,
             kernels::MutableRows out) override {
    ++calls.embed;
    ForwardingOps::embed(table, ids, out);
  }
  void rms_norm(kernels::Rows x, const float* weight, float eps, kernels::MutableRows y,
                size_t rows, size_t width) override {
    ++calls.rms_norm;
    ForwardingOps::rms_norm(x, weight, eps, y, rows, width);
  }
  void add(kernels::Rows x, kernels::MutableRows y, size_t rows, size_t width) override {
    ++calls.add;
    ForwardingOps::add(x, y, rows, width);
  }
  void glu(const kernels::ActivationSpec& act, kernels::Rows gate, kernels::Rows up,
           kernels::MutableRows out, size_t rows, size_t width) override {
    ++calls.glu;
    ForwardingOps::glu(act, gate, up, out, rows, width);
  }
  void residual_scores(kernels::Rows x, std::span<const float* const> gains, float eps,
                       kernels::MutableRows scores, size_t rows, size_t width) override {
    ++calls.residual_scores;
    ForwardingOps::residual_scores(x, gains, eps, scores, rows, width);
  }
  void residual_mix(const kernels::ResidualArgs& args, size_t rows) override {
    ++calls.residual_mix;
    ForwardingOps::residual_mix(args, rows);
  }
  void kda(const kernels::KdaArgs& args, const kernels::BatchView& batch) override {
    ++calls.kda;
    ForwardingOps::kda(args, batch);
  }
  void mla(const kernels::MlaArgs& args, const kernels::BatchView& batch) override {
    ++calls.mla;
    ForwardingOps::mla(args, batch);
  }
  void route(const kernels::RouteArgs& args, size_t rows, kernels::Routing& out) override {
    ++calls.route;
    ForwardingOps::route(args, rows, out);
  }
  void experts(kernels::Rows z, std::span<const kernels::ExpertWeights> weights,
               const kernels::Routing& routing, const kernels::ActivationSpec& act,
               kernels::MutableRows out, size_t rows) override {
    ++calls.experts;
    ForwardingOps::experts(z, weights, routing, act, out, rows);
  }
  runtime::ExecutorCalls calls;
};

}  // namespace

TEST_CASE("The executor's calls are counted right for both families", "[runtime][sim]") {
  for (const std::string preset : {"tiny-k3", "tiny-linear"}) {
    CAPTURE(preset);
    const std::string& directory = support::random_model(preset);
    const auto config = runtime::ModelConfig::load(directory);
    const auto file = runtime::WeightsFile::load(directory);
    const auto inner = kernels::make_cpu_ops(1);
    CountingOps ops(*inner);
    const auto device = kernels::make_cpu_device();
    runtime::BenchEngine engine(*device, runtime::load_hybrid_model(config, file, ops, {}),
                                {1, 2, 64});
    engine.open(1, 8, 0);
    engine.prefill();
    ops.calls = {};
    engine.decode();
    const auto expected = runtime::executor_calls(runtime::ModelGeometry(config, {}));
    CHECK(ops.calls == expected);
    CHECK(ops.calls.total() == expected.total());
  }
}
