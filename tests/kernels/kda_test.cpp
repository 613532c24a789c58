// KDA against double precision, and the equality of decode, prefill, any chunking and any company,
// to the last bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/kernels/tools.hpp"

using namespace kernels;

namespace {

constexpr size_t kSlots = 8;

// One layer's weights, the inputs of `rows` tokens of one sequence, and slots for states.
struct Layer {
  size_t heads, d, taps, rows, width;
  bool bounded;
  std::vector<float> conv, a_log, dt_bias, norm, qkv, decay, beta, gate;

  Layer(std::mt19937& rng, size_t heads_, size_t d_, size_t rows_, bool bounded_, size_t taps_ = 4)
      : heads(heads_), d(d_), taps(taps_), rows(rows_), width(heads_ * d_), bounded(bounded_) {
    conv = tools::random_floats(rng, 3 * width * taps, 0.5f);
    a_log = tools::random_floats(rng, heads);
    dt_bias = tools::random_floats(rng, width);
    norm = tools::random_floats(rng, d);
    qkv = tools::random_floats(rng, rows * 3 * width);
    decay = tools::random_floats(rng, rows * width);
    beta = tools::random_floats(rng, rows * heads);
    gate = tools::random_floats(rng, rows * width);
  }
  size_t recurrent() const { return heads * d * d; }
  size_t window() const { return (taps - 1) * 3 * width; }
  size_t slot_floats() const { return recurrent() + window(); }

  // Runs rows [begin, begin + count) of the inputs as the batch's only segment.
  void run(Ops& ops, std::vector<float>& states, std::vector<float>& out, size_t begin,
           size_t count, uint32_t slot, std::span<const KdaArgs::Capture> captures = {}) const {
    const Segment segment = {0, static_cast<uint32_t>(count), static_cast<uint32_t>(begin), slot,
                             0};
    run(ops, states, out.data() + begin * width, begin, {&segment, 1}, count, captures);
  }
  void run(Ops& ops, std::vector<float>& states, float* out, size_t begin,
           std::span<const Segment> segments, size_t count,
           std::span<const KdaArgs::Capture> captures = {}) const {
    KdaArgs args;
    args.heads = heads;
    args.d = d;
    args.conv_width = taps;
    args.qkv = {qkv.data() + begin * 3 * width, 3 * width};
    args.decay = {decay.data() + begin * width, width};
    args.beta = {beta.data() + begin * heads, heads};
    args.gate = {gate.data() + begin * width, width};
    args.conv = conv.data();
    args.a_log = a_log.data();
    args.dt_bias = dt_bias.data();
    args.has_lower_bound = bounded;
    args.lower_bound = -5.0f;
    args.norm = norm.data();
    args.state_base = reinterpret_cast<std::byte*>(states.data());
    args.slot_stride = slot_floats() * sizeof(float);
    args.conv_offset = recurrent() * sizeof(float);
    args.captures = captures;
    args.out = {out, width};
    ops.kda(args, {segments, {}, static_cast<uint32_t>(count)});
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The specification's formulas, token by token, in double precision. state is [heads][d keys][d
// values].
std::vector<double> reference(const Layer& l, std::vector<double>& state) {
  std::vector<double> out(l.rows * l.width);
  state.assign(l.recurrent(), 0.0);
  const size_t d = l.d;
  for (size_t t = 0; t < l.rows; ++t) {
    for (size_t h = 0; h < l.heads; ++h) {
      std::vector<double> x[3];
      for (size_t part = 0; part < 3; ++part) {
        for (size_t c = 0; c < d; ++c) {
          const size_t column = part * l.width + h * d + c;
          double sum = 0;
          for (size_t i = 0; i < l.taps; ++i) {
            if (t + i + 1 < l.taps) continue;
            sum += double{l.conv[column * l.taps + i]} *
                   l.qkv[(t + i + 1 - l.taps) * 3 * l.width + column];
          }
          x[part].push_back(sum * sigmoid(sum));
        }
      }
      for (size_t part = 0; part < 2; ++part) {
        double squares = 1e-6;
        for (const double value : x[part]) squares += value * value;
        for (double& value : x[part])
          value /= std::sqrt(squares) * (part == 0 ? std::sqrt(static_cast<double>(d)) : 1);
      }
      const double beta = sigmoid(l.beta[t * l.heads + h]), rate = std::exp(l.a_log[h]);
      double* s = state.data() + h * d * d;
      double squares = 0;
      std::vector<double> o(d);
      for (size_t j = 0; j < d; ++j) {
        double predicted = 0;
        for (size_t i = 0; i < d; ++i) {
          const double z = double{l.decay[t * l.width + h * d + i]} + l.dt_bias[h * d + i];
          s[i * d + j] *=
              std::exp(l.bounded ? -5 * sigmoid(rate * z) : -rate * std::log1p(std::exp(z)));
          predicted += s[i * d + j] * x[1][i];
        }
        for (size_t i = 0; i < d; ++i) {
          s[i * d + j] += x[1][i] * beta * (x[2][j] - predicted);
          o[j] += s[i * d + j] * x[0][i];
        }
        squares += o[j] * o[j];
      }
      for (size_t j = 0; j < d; ++j) {
        out[t * l.width + h * d + j] = o[j] / std::sqrt(squares / static_cast<double>(d) + 1e-5) *
                                       l.norm[j] * sigmoid(l.gate[t * l.width + h * d + j]);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("KDA agrees with double precision for every head size and both gates", "[kernels]") {
  std::mt19937 rng(1);
  tools::for_each_target([&] {
    for (const size_t d : {16u, 32u, 48u, 64u, 128u}) {
      for (const bool bounded : {true, false}) {
        const Layer layer(rng, 2, d, 40, bounded);
        std::vector<float> states(kSlots * layer.slot_floats(), 0.0f),
            out(layer.rows * layer.width);
        layer.run(*make_cpu_ops(2), states, out, 0, layer.rows, 3);
        std::vector<double> state;
        INFO("d " << d << " bounded " << bounded);
        CHECK(tools::relative_error(out, reference(layer, state)) < 2e-5);
        // The stored state: value tiles of 32 (or 16), keys in rows.
        const size_t tile = d % 32 == 0 ? 32 : 16;
        std::vector<double> tiled(state.size());
        for (size_t h = 0; h < 2; ++h) {
          for (size_t i = 0; i < d; ++i) {
            for (size_t j = 0; j < d; ++j) {
              tiled[((h * (d / tile) + j / tile) * d + i) * tile + j % tile] =
                  state[(h * d + i) * d + j];
            }
          }
        }
        const float* slot = states.data() + 3 * layer.slot_floats();
        CHECK(tools::relative_error({slot, slot + state.size()}, tiled) < 1e-5);
      }
    }
  });
}

TEST_CASE("KDA prefill, decode and any cut between them leave the same bytes",
          "[kernels][property]") {
  const auto seed = GENERATE(range(0u, 6u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  tools::for_each_target([&] {
    const Layer layer(rng, 1 + rng() % 3, seed % 2 == 0 ? 64 : 48, 100, seed % 3 != 0,
                      seed == 5 ? 3 : 4);
    std::vector<float> whole(kSlots * layer.slot_floats(), 0.0f),
        whole_out(layer.rows * layer.width);
    layer.run(*make_cpu_ops(1), whole, whole_out, 0, layer.rows, 0);
    for (const size_t most : {1u, 3u, 40u}) {
      std::vector<float> states(kSlots * layer.slot_floats(), 0.0f), out(layer.rows * layer.width);
      const auto ops = make_cpu_ops(1 + static_cast<unsigned>(most) % 3);
      for (size_t row = 0; row < layer.rows;) {
        const size_t count = std::min<size_t>(1 + rng() % most, layer.rows - row);
        layer.run(*ops, states, out, row, count, 0);
        row += count;
      }
      INFO("pieces of at most " << most);
      CHECK(tools::same_bytes(out, whole_out));
      CHECK(tools::same_bytes(states, whole));
    }
  });
}

TEST_CASE("A KDA sequence is blind to the others of its batch", "[kernels]") {
  std::mt19937 rng(9);
  const Layer layer(rng, 2, 32, 60, true);
  std::vector<float> states(kSlots * layer.slot_floats(), 0.0f), out(layer.rows * layer.width);
  // Rows 0..9 and 10..59 as two sequences of one batch, then each alone.
  const Segment both[2] = {{0, 10, 0, 1, 0}, {10, 50, 0, 2, 0}};
  layer.run(*make_cpu_ops(2), states, out.data(), 0, both, layer.rows);
  std::vector<float> alone(kSlots * layer.slot_floats(), 0.0f), alone_out(layer.rows * layer.width);
  const auto ops = make_cpu_ops(1);
  layer.run(*ops, alone, alone_out, 0, 10, 1);
  layer.run(*ops, alone, alone_out, 10, 50, 2);
  CHECK(tools::same_bytes(out, alone_out));
  CHECK(tools::same_bytes(states, alone));
}

TEST_CASE("A captured KDA state is the state as if the run had ended there", "[kernels]") {
  std::mt19937 rng(10);
  const Layer layer(rng, 2, 64, 90, true);
  const auto ops = make_cpu_ops(2);
  std::vector<float> states(kSlots * layer.slot_floats(), 0.0f), out(layer.rows * layer.width),
      plain_out = out;
  const std::vector<KdaArgs::Capture> captures = {
      {89, 7}, {0, 4}, {1, 5}, {63, 6}};  // in no particular order
  layer.run(*ops, states, out, 0, layer.rows, 2, captures);
  std::vector<float> plain(kSlots * layer.slot_floats(), 0.0f);
  layer.run(*ops, plain, plain_out, 0, layer.rows, 2);
  CHECK(tools::same_bytes(out, plain_out));
  const auto slot = [&](const std::vector<float>& from, size_t index) {
    const auto begin = from.begin() + static_cast<long>(index * layer.slot_floats());
    return std::vector<float>(begin, begin + static_cast<long>(layer.slot_floats()));
  };
  CHECK(tools::same_bytes(slot(states, 2), slot(plain, 2)));
  for (const KdaArgs::Capture& capture : captures) {
    std::vector<float> cut(kSlots * layer.slot_floats(), 0.0f), cut_out = out;
    layer.run(*ops, cut, cut_out, 0, capture.row + 1, 2);
    INFO("after row " << capture.row);
    CHECK(tools::same_bytes(slot(states, capture.slot), slot(cut, 2)));
  }
}

TEST_CASE("A KDA gate so negative that the decay is zero forgets the state and stays finite",
          "[kernels]") {
  std::mt19937 rng(11);
  Layer layer(rng, 1, 32, 5, false);
  for (float& f : layer.decay) f = 3000.0f;
  std::vector<float> states(kSlots * layer.slot_floats(), 1.0f), out(layer.rows * layer.width);
  layer.run(*make_cpu_ops(1), states, out, 0, layer.rows, 0);
  for (const float value : out) CHECK(std::isfinite(value));
}
