// Gradients of the row-wise operations against their plain definition in double.
#include <catch2/catch.hpp>
#include <random>

#include "tests/kernels/numbers.hpp"

using namespace kernels;
using tools::Numbers;

namespace {

constexpr double kTolerance = 5e-6;
constexpr size_t kRows = 7;

}  // namespace

TEST_CASE("The gradient of RMSNorm agrees with its definition", "[kernels]") {
  std::mt19937 rng(1);
  tools::for_each_target([&] {
    for (const size_t width : {3u, 16u, 37u, 256u}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        const bool add = (bits & 1u) != 0, frozen = (bits & 2u) != 0, in_place = (bits & 4u) != 0;
        const size_t ld = width + bits;
        Numbers x(rng, kRows * ld, 2), dy(rng, kRows * ld), weight(rng, width),
            y = x, dx = dy, dweight(rng, frozen ? 0 : width);
        tools::run_both([&](auto& ops, auto zero) {
          using Real = decltype(zero);
          ops.rms_norm(x.grid<Real>(ld), weight.data<Real>(), 1e-5f, y.grid<Real>(ld), kRows,
                       width);
          RmsNormGrad<Real> args;
          args.rows = kRows, args.width = width;
          args.x = x.grid<Real>(ld), args.dy = dy.grid<Real>(ld);
          args.weight = weight.data<Real>();
          args.dx = (in_place ? dy : dx).grid<Real>(ld);
          args.add = add && !in_place;
          args.dweight = dweight.data<Real>();
          ops.rms_norm_grad(args);
        });
        INFO("width " << width << " add " << add << " frozen " << frozen);
        CHECK(y.error() < kTolerance);
        CHECK(dx.error() < kTolerance);
        CHECK(dy.error() < kTolerance);
        CHECK(dweight.error() < kTolerance);
      }
    }
  });
}

TEST_CASE("The gradient of a gated activation agrees with its definition", "[kernels]") {
  std::mt19937 rng(2);
  tools::for_each_target([&] {
    for (const ActivationSpec spec :
         {ActivationSpec{Activation::kSwiGLU, 0, 0}, ActivationSpec{Activation::kSiTU, 4, 25},
          ActivationSpec{Activation::kSiTU, 4, 0}}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        const bool shared = (bits & 1u) != 0, in_place = (bits & 2u) != 0;
        const size_t width = (bits & 4u) != 0 ? 128 : 37, ld = width + 3;
        Numbers gate(rng, kRows * ld, 4), up(rng, kRows * ld, 10), dout(rng, kRows * ld),
            share(rng, shared ? kRows : 0), dshare = share, inner(rng, shared ? kRows * ld : 0),
                                            dgate = gate, dup = up;
        tools::run_both([&](auto& ops, auto zero) {
          using Real = decltype(zero);
          GluGrad<Real> args;
          args.rows = kRows, args.width = width, args.activation = spec;
          args.gate = gate.grid<Real>(ld), args.up = up.grid<Real>(ld);
          args.dout = dout.grid<Real>(ld);
          args.share = share.data<Real>();
          args.dshare = dshare.data<Real>();
          args.dgate = (in_place ? gate : dgate).grid<Real>(ld);
          args.dup = (in_place ? up : dup).grid<Real>(ld);
          args.inner = inner.grid<Real>(ld);
          ops.glu_grad(args);
        });
        INFO("kind " << static_cast<int>(spec.kind) << " width " << width << " shared " << shared);
        for (const Numbers* out : {&gate, &up, &dgate, &dup, &dshare, &inner})
          CHECK(out->error() < kTolerance);
      }
    }
  });
}

TEST_CASE("The gradient of an attention-residual mix agrees with its definition", "[kernels]") {
  std::mt19937 rng(3);
  tools::for_each_target([&] {
    for (const size_t sources : {1u, 2u, 3u, 9u}) {
      for (const size_t width : {16u, 37u, 256u}) {
        const bool frozen = (width + sources) % 3 == 0;
        const size_t scored = sources == 1 ? 0 : width, trained = frozen ? 0 : width;
        std::vector<Numbers> x, dx;
        for (size_t s = 0; s < sources; ++s) {
          x.emplace_back(rng, kRows * width, static_cast<float>(s + 1));
          dx.emplace_back(rng, kRows * width);
        }
        Numbers score_norm(rng, scored), score_proj(rng, scored, 0.1f), norm(rng, width),
            dout(rng, kRows * width), dscore_norm(rng, frozen ? 0 : scored),
            dscore_proj(rng, frozen ? 0 : scored), dnorm(rng, trained);
        tools::run_both([&](auto& ops, auto zero) {
          using Real = decltype(zero);
          std::vector<Grid<const Real>> from;
          std::vector<Grid<Real>> to;
          for (Numbers& each : x) from.push_back(each.grid<Real>(width));
          for (Numbers& each : dx) to.push_back(each.grid<Real>(width));
          ResidualGrad<Real> args;
          args.rows = kRows, args.width = width;
          args.sources = from, args.dsources = to;
          args.score_norm = score_norm.data<Real>(), args.score_proj = score_proj.data<Real>();
          args.norm = norm.data<Real>();
          args.dout = dout.grid<Real>(width);
          args.dscore_norm = dscore_norm.data<Real>();
          args.dscore_proj = dscore_proj.data<Real>();
          args.dnorm = dnorm.data<Real>();
          ops.residual_grad(args);
        });
        INFO("sources " << sources << " width " << width << " frozen " << frozen);
        for (const Numbers& each : dx) CHECK(each.error() < kTolerance);
        for (const Numbers* out : {&dscore_norm, &dscore_proj, &dnorm})
          CHECK(out->error() < kTolerance);
      }
    }
  });
}

TEST_CASE("The gradient of expert weights agrees with its definition", "[kernels]") {
  std::mt19937 rng(4);
  tools::for_each_target([&] {
    for (const size_t top_k : {2u, 4u, 16u}) {
      for (const bool renormalise : {true, false}) {
        constexpr size_t kExperts = 20;
        std::vector<uint32_t> expert, ids(kExperts);
        for (uint32_t e = 0; e < kExperts; ++e) ids[e] = e;
        for (size_t r = 0; r < kRows; ++r)
          std::sample(ids.begin(), ids.end(), std::back_inserter(expert), top_k, rng);
        Numbers logits(rng, kRows * kExperts, 3), dweight(rng, kRows * top_k),
            dlogits(rng, kRows * kExperts);
        tools::run_both([&](auto& ops, auto zero) {
          using Real = decltype(zero);
          ops.route_grad({kRows, kExperts, top_k, renormalise, 2.5f, logits.grid<Real>(kExperts),
                          expert, dweight.data<Real>(), dlogits.grid<Real>(kExperts)});
        });
        INFO("top " << top_k << " renormalise " << renormalise);
        CHECK(dlogits.error() < kTolerance);
      }
    }
  });
}

TEST_CASE("Cross entropy and its gradient agree with their definition", "[kernels]") {
  std::mt19937 rng(5);
  tools::for_each_target([&] {
    for (const size_t width : {1u, 5u, 16u, 1003u}) {
      Numbers logits(rng, kRows * width, 5);
      std::vector<int32_t> target;
      std::vector<float> weight = tools::random_floats(rng, kRows), loss[2];
      weight[2] = 0;
      for (size_t r = 0; r < kRows; ++r) target.push_back(static_cast<int32_t>(rng() % width));
      double total[2];
      tools::run_both([&](auto& ops, auto zero) {
        using Real = decltype(zero);
        const size_t which = std::is_same_v<Real, double> ? 1 : 0;
        loss[which].resize(kRows);
        total[which] = ops.cross_entropy({kRows, width, logits.grid<Real>(width), target, weight,
                                          width == 5 ? nullptr : loss[which].data()});
      });
      CHECK(logits.error() < kTolerance);
      CHECK(total[0] == Approx(total[1]).epsilon(1e-5).margin(1e-6));
      for (size_t r = 0; r < kRows; ++r)
        CHECK(loss[0][r] == Approx(loss[1][r]).epsilon(1e-5).margin(1e-5));
    }
  });
}
