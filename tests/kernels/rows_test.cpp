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

namespace {

// Bank rows, a prefix and a sublayer's output, all [rows, width].
struct Stream {
  size_t rows, width;
  std::vector<std::vector<float>> bank;
  std::vector<float> prefix, sublayer, gain, norm;

  // The next input of the first `count` rows; `after` gets the prefix.
  std::vector<float> run(Ops& ops, size_t count, bool restart, std::vector<float>& after) const {
    std::vector<Rows> rows_of, scores_of;
    std::vector<std::vector<float>> scores;
    const float* const gains[2] = {norm.data(), gain.data()};  // the second is this mix's
    for (const auto& row : bank) {
      rows_of.push_back({row.data(), width});
      scores.emplace_back(count * 2);
      ops.residual_scores(rows_of.back(), gains, 1e-5f, {scores.back().data(), 2}, count, width);
      scores_of.push_back({scores.back().data() + 1, 2});
    }
    after.assign(prefix.begin(), prefix.begin() + static_cast<long>(count * width));
    std::vector<float> out(count * width);
    ResidualArgs args;
    args.width = width;
    args.prefix = {after.data(), width};
    if (!sublayer.empty()) args.sublayer = {sublayer.data(), width};
    args.restart = restart;
    args.bank = rows_of;
    args.bank_scores = scores_of;
    args.gain = gain.data();
    args.norm = norm.data();
    args.out = {out.data(), width};
    ops.residual_mix(args, count);
    return out;
  }

  std::vector<double> reference(bool restart) const {
    std::vector<double> expected;
    for (size_t r = 0; r < rows; ++r) {
      std::vector<std::vector<double>> source;
      for (const auto& row : bank)
        source.emplace_back(row.begin() + static_cast<long>(r * width),
                            row.begin() + static_cast<long>((r + 1) * width));
      source.emplace_back();
      for (size_t i = r * width; i < (r + 1) * width; ++i)
        source.back().push_back((restart ? 0.0 : double{prefix[i]}) +
                                (sublayer.empty() ? 0.0 : double{sublayer[i]}));
      std::vector<double> weight;
      double total = 0;
      for (const auto& x : source) {
        double squares = 0, dot = 0;
        for (size_t i = 0; i < width; ++i) squares += x[i] * x[i], dot += x[i] * gain[i];
        weight.push_back(std::exp(dot / std::sqrt(squares / static_cast<double>(width) + 1e-5)));
        total += weight.back();
      }
      std::vector<double> mix(width);
      double squares = 0;
      for (size_t i = 0; i < width; ++i) {
        for (size_t j = 0; j < source.size(); ++j) mix[i] += weight[j] / total * source[j][i];
        squares += mix[i] * mix[i];
      }
      for (size_t i = 0; i < width; ++i)
        expected.push_back(mix[i] / std::sqrt(squares / static_cast<double>(width) + 1e-5) *
                           norm[i]);
    }
    return expected;
  }
};

}  // namespace

TEST_CASE("residual_mix gives the specification's numbers", "[kernels]") {
  const auto vectors = tools::k3_vectors();
  const auto& v = vectors.at("attnres").as_object();
  const auto bank = tools::numbers(v.at("bank")), out = tools::numbers(v.at("out"));
  Stream stream = {1, out.size(), {}, tools::numbers(v.at("prefix")), {}, {}, {}};
  const auto w_norm = tools::numbers(v.at("w_norm")), proj = tools::numbers(v.at("w_proj"));
  for (size_t i = 0; i < out.size(); ++i) stream.gain.push_back(w_norm[i] * proj[i]);
  for (size_t j = 0; j < bank.size() / out.size(); ++j) {
    const auto first = bank.begin() + static_cast<long>(j * out.size());
    stream.bank.emplace_back(first, first + static_cast<long>(out.size()));
  }
  stream.norm.assign(out.size(), 1.0f);
  std::vector<float> after;
  const auto y = stream.run(*make_cpu_ops(1), 1, false, after);
  double squares = 0;  // the specification's mix is not normalised yet
  for (const float x : out) squares += double{x} * x;
  const double rms = std::sqrt(squares / static_cast<double>(out.size()) + 1e-5);
  for (size_t i = 0; i < out.size(); ++i)
    CHECK(y[i] == Approx(out[i] / rms).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("residual_mix agrees with double precision in any batch", "[kernels][property]") {
  std::mt19937 rng(4);
  tools::for_each_target([&] {
    for (const size_t banked : {0u, 1u, 8u}) {
      for (const bool restart : {false, true}) {
        const size_t rows = 11, width = 1030;
        Stream stream = {rows,
                         width,
                         {},
                         tools::random_floats(rng, rows * width),
                         tools::random_floats(rng, rows * width),
                         tools::random_floats(rng, width, 0.05f),
                         tools::random_floats(rng, width)};
        for (size_t j = 0; j < banked; ++j)
          stream.bank.push_back(tools::random_floats(rng, rows * width));
        INFO(banked << " bank rows, restart " << restart);
        std::vector<float> after;
        const auto run = [&](Ops& ops, size_t count) {
          return stream.run(ops, count, restart, after);
        };
        CHECK(tools::relative_error(run(*make_cpu_ops(2), rows), stream.reference(restart)) < 3e-6);
        for (size_t i = 0; i < after.size(); ++i) {
          const float sum = restart ? stream.sublayer[i] : stream.prefix[i] + stream.sublayer[i];
          REQUIRE(after[i] == sum);
        }
        check_batches(run, rows, width);
      }
    }
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

TEST_CASE("add moves rows with a stride", "[kernels]") {
  std::mt19937 rng(6);
  const size_t rows = 40, width = 1000, ld = 1010;
  const auto x = tools::random_floats(rng, rows * ld),
             before = tools::random_floats(rng, rows * ld);
  auto y = before;
  const auto ops = make_cpu_ops(3);
  ops->add({x.data(), ld}, {y.data(), ld}, rows, width);
  for (size_t i = 0; i < y.size(); ++i)
    REQUIRE(y[i] == (i % ld < width ? before[i] + x[i] : before[i]));
}
