// Row operations against double precision, and their independence of batch and threads.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/kernels/tools.hpp"

using namespace kernels;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// fn(ops, rows) -> output; the first rows of a large batch on 3 threads must equal a batch of 1 on
// one thread.
template <class Fn>
void check_batches(const Fn& fn, size_t rows, size_t width) {
  const auto one = make_cpu_ops(1), many = make_cpu_ops(3);
  const std::vector<float> all = fn(*many, rows), single = fn(*one, 1);
  REQUIRE(all.size() == rows * width);
  CHECK(tools::same_bytes({all.begin(), all.begin() + static_cast<long>(width)}, single));
  CHECK(tools::same_bytes(fn(*one, rows), all));
}

}  // namespace

TEST_CASE("rms_norm agrees with double precision, in place too", "[kernels]") {
  std::mt19937 rng(1);
  tools::for_each_target([&] {
    for (const size_t width : {1u, 16u, 37u, 512u, 7168u}) {
      const size_t rows = 9;
      const auto x = tools::random_floats(rng, rows * width, 3.0f),
                 w = tools::random_floats(rng, width);
      std::vector<double> expected;
      for (size_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (size_t i = 0; i < width; ++i) squares += double{x[r * width + i]} * x[r * width + i];
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        for (size_t i = 0; i < width; ++i) expected.push_back(x[r * width + i] * inverse * w[i]);
      }
      const auto run = [&](Ops& ops, size_t count) {
        std::vector<float> y(x.begin(), x.begin() + static_cast<long>(count * width));
        ops.rms_norm({y.data(), width}, w.data(), 1e-5f, {y.data(), width}, count, width);
        return y;
      };
      CHECK(tools::relative_error(run(*make_cpu_ops(1), rows), expected) < 3e-6);
      check_batches(run, rows, width);
    }
  });
}

TEST_CASE("glu agrees with double precision for SwiGLU and SiTU", "[kernels]") {
  std::mt19937 rng(2);
  tools::for_each_target([&] {
    const size_t rows = 5, width = 5003;
    const auto g = tools::random_floats(rng, rows * width, 5.0f),
               u = tools::random_floats(rng, rows * width, 20.0f);
    for (const ActivationSpec act :
         {ActivationSpec{Activation::kSwiGLU, 0, 0}, ActivationSpec{Activation::kSiTU, 4, 25},
          ActivationSpec{Activation::kSiTU, 4, 0}}) {
      std::vector<double> expected;
      for (size_t i = 0; i < g.size(); ++i) {
        const double gate = g[i], up = u[i];
        const double linear = act.linear_beta > 0 ? 25 * std::tanh(up / 25) : up;
        expected.push_back(act.kind == Activation::kSwiGLU
                               ? gate * sigmoid(gate) * up
                               : 4 * std::tanh(gate / 4) * sigmoid(gate) * linear);
      }
      const auto run = [&](Ops& ops, size_t count) {
        std::vector<float> y(count * width);
        ops.glu(act, {g.data(), width}, {u.data(), width}, {y.data(), width}, count, width);
        return y;
      };
      CHECK(tools::relative_error(run(*make_cpu_ops(1), rows), expected) < 1e-6);
      check_batches(run, rows, width);
    }
  });
}

TEST_CASE("A NaN or an infinity in the input of glu is not hidden", "[kernels]") {
  const auto ops = make_cpu_ops(1);
  tools::for_each_target([&] {
    for (const Activation kind : {Activation::kSwiGLU, Activation::kSiTU}) {
      const float gate[3] = {NAN, 1.0f, 2.0f}, up[3] = {1.0f, NAN, 3.0f};
      float out[3];
      ops->glu({kind, 4, 25}, {gate, 3}, {up, 3}, {out, 3}, 1, 3);
      CHECK(std::isnan(out[0]));
      CHECK(std::isnan(out[1]));
      CHECK(std::isfinite(out[2]));
    }
  });
}

TEST_CASE("residual_mix gives the specification's numbers", "[kernels]") {
  const auto vectors = tools::k3_vectors();
  const auto& v = vectors.at("attnres").as_object();
  const auto bank = tools::numbers(v.at("bank")), prefix = tools::numbers(v.at("prefix")),
             out = tools::numbers(v.at("out"));
  auto gain = tools::numbers(v.at("w_norm"));
  const auto proj = tools::numbers(v.at("w_proj"));
  const size_t width = prefix.size();
  for (size_t i = 0; i < width; ++i) gain[i] *= proj[i];
  std::vector<Rows> rows;
  for (size_t j = 0; j < bank.size() / width; ++j) rows.push_back({bank.data() + j * width, width});
  std::vector<float> y(width);
  make_cpu_ops(1)->residual_mix(rows, {prefix.data(), width}, gain.data(), 1e-5f, {y.data(), width},
                                1, width);
  for (size_t i = 0; i < width; ++i) CHECK(y[i] == Approx(out[i]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("residual_mix agrees with double precision in any batch", "[kernels][property]") {
  std::mt19937 rng(4);
  tools::for_each_target([&] {
    const size_t rows = 11, width = 1030, sources = 9;
    const auto data = tools::random_floats(rng, sources * rows * width),
               gain = tools::random_floats(rng, width, 0.05f);
    std::vector<double> expected(rows * width, 0.0);
    for (size_t r = 0; r < rows; ++r) {
      std::vector<double> score;
      for (size_t j = 0; j < sources; ++j) {
        const float* x = &data[(j * rows + r) * width];
        double squares = 0, dot = 0;
        for (size_t i = 0; i < width; ++i)
          squares += double{x[i]} * x[i], dot += double{x[i]} * gain[i];
        score.push_back(std::exp(dot / std::sqrt(squares / width + 1e-5)));
      }
      double total = 0;
      for (const double s : score) total += s;
      for (size_t j = 0; j < sources; ++j) {
        for (size_t i = 0; i < width; ++i)
          expected[r * width + i] += score[j] / total * data[(j * rows + r) * width + i];
      }
    }
    const auto run = [&](Ops& ops, size_t count) {
      std::vector<Rows> bank;
      for (size_t j = 0; j + 1 < sources; ++j) bank.push_back({&data[j * rows * width], width});
      std::vector<float> y(count * width);
      ops.residual_mix(bank, {&data[(sources - 1) * rows * width], width}, gain.data(), 1e-5f,
                       {y.data(), width}, count, width);
      return y;
    };
    CHECK(tools::relative_error(run(*make_cpu_ops(2), rows), expected) < 2e-6);
    check_batches(run, rows, width);
  });
}

TEST_CASE("embed reads rows of bf16, fp16 and fp32 tables exactly", "[kernels]") {
  std::mt19937 rng(5);
  const auto ops = make_cpu_ops(2);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const auto table = tools::random_matrix(rng, dtype, 50, 70);
    const std::vector<int32_t> ids = {49, 0, 7, 7};
    std::vector<float> out(ids.size() * 70);
    ops->embed(table.view(), ids, {out.data(), 70});
    for (size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i] ==
            static_cast<float>(table.value[static_cast<size_t>(ids[i / 70]) * 70 + i % 70]));
    }
  }
}

TEST_CASE("add and copy move rows with a stride", "[kernels]") {
  std::mt19937 rng(6);
  const size_t rows = 40, width = 1000, ld = 1010;
  const auto x = tools::random_floats(rng, rows * ld),
             before = tools::random_floats(rng, rows * ld);
  auto y = before;
  const auto ops = make_cpu_ops(3);
  ops->add({x.data(), ld}, {y.data(), ld}, rows, width);
  for (size_t i = 0; i < y.size(); ++i)
    REQUIRE(y[i] == (i % ld < width ? before[i] + x[i] : before[i]));
  ops->copy({x.data(), ld}, {y.data(), ld}, rows, width);
  for (size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == (i % ld < width ? x[i] : before[i]));
}
