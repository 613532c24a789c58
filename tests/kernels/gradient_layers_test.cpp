// Gradients of attention and KDA against their plain definition in double: sequences of unequal
// length side by side, every head size, frozen parameters, extreme gates.
#include <catch2/catch.hpp>
#include <random>

#include "tests/kernels/numbers.hpp"

using namespace kernels;
using tools::Numbers;

namespace {

// Sequences that follow each other but for a row between two of them.
std::vector<Sequence> sequences_of(std::initializer_list<size_t> counts) {
  std::vector<Sequence> all;
  size_t begin = 1;
  for (const size_t count : counts) {
    all.push_back({begin, count});
    begin += count + 1;
  }
  return all;
}
size_t rows_of(const std::vector<Sequence>& sequences) {
  return sequences.back().begin + sequences.back().count + 1;
}

struct KdaCase {
  size_t heads, d, taps;
  bool bounded, frozen;
  float lower_bound = -5.0f, spread = 2.0f;  // spread of the raw log-decays
};

// Runs a random layer both ways and compares its gradients.
void check_kda(std::mt19937& rng, const KdaCase& c, const std::vector<Sequence>& sequences) {
  const size_t rows = rows_of(sequences), width = c.heads * c.d, trained = c.frozen ? 0 : 1;
  Numbers qkv(rng, rows * 3 * width), decay(rng, rows * width, c.spread),
      beta(rng, rows * c.heads, 2), gate(rng, rows * width), dout(rng, rows * width),
      conv(rng, 3 * width * c.taps, 0.5f), a_log(rng, c.heads), dt_bias(rng, width), norm(rng, c.d),
      dqkv(rng, rows * 3 * width), ddecay(rng, rows * width), dbeta(rng, rows * c.heads),
      dgate(rng, rows * width), dconv(rng, trained * conv.real.size()),
      da_log(rng, trained * c.heads), ddt_bias(rng, trained * width), dnorm(rng, trained * c.d);
  tools::run_both([&](auto& ops, auto zero) {
    using Real = decltype(zero);
    KdaGrad<Real> args;
    args.heads = c.heads, args.d = c.d, args.conv_width = c.taps;
    args.has_lower_bound = c.bounded, args.lower_bound = c.lower_bound;
    args.sequences = sequences;
    args.qkv = qkv.grid<Real>(3 * width), args.decay = decay.grid<Real>(width);
    args.beta = beta.grid<Real>(c.heads), args.gate = gate.grid<Real>(width);
    args.conv = conv.data<Real>(), args.a_log = a_log.data<Real>();
    args.dt_bias = dt_bias.data<Real>(), args.norm = norm.data<Real>();
    args.dout = dout.grid<Real>(width);
    args.dqkv = dqkv.grid<Real>(3 * width), args.ddecay = ddecay.grid<Real>(width);
    args.dbeta = dbeta.grid<Real>(c.heads), args.dgate = dgate.grid<Real>(width);
    args.dconv = dconv.data<Real>(), args.da_log = da_log.data<Real>();
    args.ddt_bias = ddt_bias.data<Real>(), args.dnorm = dnorm.data<Real>();
    ops.kda_grad(args);
  });
  const std::pair<const char*, const Numbers*> results[] = {
      {"dqkv", &dqkv},   {"ddecay", &ddecay}, {"dbeta", &dbeta},       {"dgate", &dgate},
      {"dconv", &dconv}, {"da_log", &da_log}, {"ddt_bias", &ddt_bias}, {"dnorm", &dnorm}};
  for (const auto& [name, numbers] : results) {
    INFO("d " << c.d << " taps " << c.taps << " bounded " << c.bounded << ": " << name << " error "
              << numbers->error());
    // da_log is one sum of the whole head, whose terms cancel.
    CHECK(numbers->error() < (numbers == &da_log ? 1e-4 : 1e-5));
  }
}

}  // namespace

TEST_CASE("The gradient of attention agrees with its definition", "[kernels]") {
  std::mt19937 rng(1);
  struct Shape {
    size_t heads, d_nope, d_rope, d_v;
    bool gated;
  };
  const auto sequences = sequences_of({1, 48, 13, 70, 101});
  const size_t rows = rows_of(sequences);
  tools::for_each_target([&] {
    for (const Shape& s :
         {Shape{1, 16, 8, 16, false}, Shape{3, 32, 16, 64, true}, Shape{2, 5, 3, 7, true}}) {
      const size_t key = s.heads * (s.d_nope + s.d_rope), pair = s.heads * (s.d_nope + s.d_v),
                   value = s.heads * s.d_v, gates = s.gated ? rows * value : 0;
      Numbers q(rng, rows * key, 2), kv(rng, rows * pair), k_rope(rng, rows * s.d_rope),
          gate(rng, gates), dout(rng, rows * value), dq(rng, rows * key), dkv(rng, rows * pair),
          dk_rope(rng, rows * s.d_rope), dgate(rng, gates);
      tools::run_both([&](auto& ops, auto zero) {
        using Real = decltype(zero);
        AttentionGrad<Real> args;
        args.heads = s.heads, args.d_nope = s.d_nope, args.d_rope = s.d_rope, args.d_v = s.d_v;
        args.sequences = sequences;
        args.q = q.grid<Real>(key), args.kv = kv.grid<Real>(pair);
        args.k_rope = k_rope.grid<Real>(s.d_rope), args.gate = gate.grid<Real>(value);
        args.dout = dout.grid<Real>(value);
        args.dq = dq.grid<Real>(key), args.dkv = dkv.grid<Real>(pair);
        args.dk_rope = dk_rope.grid<Real>(s.d_rope), args.dgate = dgate.grid<Real>(value);
        ops.attention_grad(args);
      });
      INFO("heads " << s.heads << " gated " << s.gated);
      for (const Numbers* out : {&dq, &dkv, &dk_rope, &dgate}) CHECK(out->error() < 1e-5);
    }
  });
}

TEST_CASE("The gradient of KDA agrees with its definition for every head size and both gates",
          "[kernels]") {
  std::mt19937 rng(2);
  const auto sequences = sequences_of({1, 16, 5, 33, 70});
  tools::for_each_target([&] {
    for (const bool bounded : {true, false}) {
      for (const size_t d : {16u, 32u, 48u, 64u})
        check_kda(rng, {2, d, 4, bounded, d == 48}, sequences);
      for (const size_t taps : {1u, 2u, 3u})
        check_kda(rng, {1, 32, taps, bounded, false}, sequences);
    }
  });
  check_kda(rng, {1, 128, 4, true, false}, sequences);
  check_kda(rng, {1, 128, 4, false, false}, sequences);
}

TEST_CASE("The gradient of KDA holds for gates at their bounds and decays of zero", "[kernels]") {
  std::mt19937 rng(3);
  const auto sequences = sequences_of({40});
  for (const float spread : {0.0f, 20.0f, 300.0f}) {
    check_kda(rng, {2, 32, 4, true, false, -5.0f, spread}, sequences);
    check_kda(rng, {2, 32, 4, true, false, -8.0f, spread}, sequences);
    check_kda(rng, {2, 32, 4, false, false, 0.0f, std::min(spread, 60.0f)}, sequences);
  }
}
