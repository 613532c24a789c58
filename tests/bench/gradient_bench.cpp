// The backward pass at the shape of the small pretrained model (8 layers, hidden 256, 1024 rows in
// 4 sequences): every product and every other operation with its microseconds per row, how often a
// step runs it, and the sum over a step. Times are the thread's CPU time, the best of many passes.
//   bench-gradient [seconds for each line]
#include "kernels/base/row_step.hpp"
#include "kernels/train/gradient_ops.hpp"
#include "tests/bench/timing.hpp"

namespace {

using kernels::Grid;

constexpr size_t kRows = 1024, kHidden = 256, kVocab = 4096, kExperts = 16, kTopK = 4;
constexpr size_t kKdaLayers = 6, kMlaLayers = 2, kMoeLayers = 7;
const std::vector<kernels::Sequence> kSequences = {{0, 256}, {256, 256}, {512, 256}, {768, 256}};

double cpu_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Random rows at an odd number of cache lines, as a trainer keeps them.
struct Block {
  size_t ld;
  std::vector<float> data;

  explicit Block(size_t width, size_t rows = kRows)
      : ld(kernels::row_step(width)), data(bench::floats(rows * ld)) {}
  Grid<float> grid(size_t column = 0) { return {data.data() + column, ld}; }
};

class Step {
 public:
  explicit Step(double budget_s) : budget_s_(budget_s), ceilings_(1, cpu_seconds) {}

  kernels::GradientOps<float>& ops() { return *ops_; }

  // `count` passes are in a step; flops 0: not a product.
  template <class Pass>
  void measure(const std::string& name, size_t count, double flops, const Pass& pass) {
    pass();
    kernels::CeilingRates rates;
    double best = 1e9, since_ceilings = 1;
    for (double total = 0; total < budget_s_;) {
      if (flops != 0 && since_ceilings > 0.05) {
        rates.keep_best(ceilings_.measure(0.01));
        since_ceilings = 0;
      }
      const double begin = cpu_seconds();
      pass();
      const double took = cpu_seconds() - begin;
      best = std::min(best, took);
      total += took, since_ceilings += took;
    }
    const double per_row = best * 1e6 / kRows, share = per_row * static_cast<double>(count);
    std::printf("%-34s %8.3f us/row  x %3zu = %7.2f", name.c_str(), per_row, count, share);
    if (flops != 0) {
      std::printf("   %6.1f GFLOP/s = %.2f of the peak", flops / best / 1e9,
                  flops / best / rates.flops);
      products_us_ += share;
      step_flops_ += flops * static_cast<double>(count);
    } else {
      others_us_ += share;
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void print_sum() const {
    std::printf("a row: products %.1f us (%.1f GFLOP/s), the others %.1f us, together %.1f us\n",
                products_us_, step_flops_ / kRows / products_us_ / 1e3, others_us_,
                products_us_ + others_us_);
  }

 private:
  double budget_s_;
  kernels::Ceilings ceilings_;
  std::unique_ptr<kernels::GradientOps<float>> ops_ = kernels::make_cpu_gradient_ops();
  double products_us_ = 0, others_us_ = 0, step_flops_ = 0;
};

// The products of a layer y = x W^T with outputs x inputs weights.
void layer(Step& step, const std::string& name, size_t count, size_t outputs, size_t inputs,
           size_t rows = kRows, bool forward = false) {
  Block x(inputs, rows), dy(outputs, rows), dx(inputs, rows);
  std::vector<float> w = bench::floats(outputs * inputs), dw(w.size());
  const double flops = 2.0 * static_cast<double>(rows * outputs * inputs);
  kernels::GradientOps<float>& ops = step.ops();
  const std::string shape = " " + std::to_string(outputs) + "x" + std::to_string(inputs);
  if (forward) {
    step.measure(name + shape + " y", count, flops, [&] {
      ops.product(
          {rows, outputs, inputs, x.grid(), {w.data(), inputs}, false, true, dy.grid(), false});
    });
  }
  step.measure(name + shape + " dx", count, flops, [&] {
    ops.product(
        {rows, inputs, outputs, dy.grid(), {w.data(), inputs}, false, false, dx.grid(), false});
  });
  step.measure(name + shape + " dW", count, flops, [&] {
    ops.product(
        {outputs, inputs, rows, dy.grid(), x.grid(), true, false, {dw.data(), inputs}, true});
  });
}

void products(Step& step) {
  constexpr size_t kChosen = kMoeLayers * kExperts, kExpertRows = kRows * kTopK / kExperts;
  layer(step, "KDA in", kKdaLayers, 1092, kHidden);
  layer(step, "KDA decay", kKdaLayers, 256, 64);
  layer(step, "attention out", kKdaLayers + kMlaLayers, kHidden, 256);
  layer(step, "MLA in", kMlaLayers, 432, kHidden);
  layer(step, "MLA query", kMlaLayers, 192, 96);
  layer(step, "MLA keys and values", kMlaLayers, 384, 64, kRows, true);
  layer(step, "dense in", 1, 1536, kHidden);
  layer(step, "dense down", 1, kHidden, 768);
  layer(step, "mixture in", kMoeLayers, 656, kHidden);
  layer(step, "shared down", kMoeLayers, kHidden, 256);
  layer(step, "latent up", kMoeLayers, kHidden, 128);
  layer(step, "expert in", kChosen, 256, 128, kExpertRows, true);
  layer(step, "expert down", kChosen, 128, 128, kExpertRows);
  layer(step, "head", 1, kVocab, kHidden);
}

void kda(Step& step, bool bounded, size_t count) {
  constexpr size_t kHeads = 4, kD = 64, kWidth = kHeads * kD;
  Block in(1092), decay(kWidth), dout(kWidth), din(1092), ddecay(kWidth);
  const auto conv = bench::floats(3 * kWidth * 4, 0.5f), a_log = bench::floats(kHeads),
             dt_bias = bench::floats(kWidth), norm = bench::floats(kD);
  std::vector<float> dconv(conv.size()), da_log(kHeads), ddt_bias(kWidth), dnorm(kD);
  kernels::KdaGrad<float> args;
  args.heads = kHeads, args.d = kD;
  args.has_lower_bound = bounded, args.lower_bound = -5.0f;
  args.sequences = kSequences;
  args.qkv = in.grid(), args.gate = in.grid(3 * kWidth), args.beta = in.grid(4 * kWidth + kD);
  args.decay = decay.grid(), args.dout = dout.grid();
  args.conv = conv.data(), args.a_log = a_log.data();
  args.dt_bias = dt_bias.data(), args.norm = norm.data();
  args.dqkv = din.grid(), args.dgate = din.grid(3 * kWidth);
  args.dbeta = din.grid(4 * kWidth + kD), args.ddecay = ddecay.grid();
  args.dconv = dconv.data(), args.da_log = da_log.data();
  args.ddt_bias = ddt_bias.data(), args.dnorm = dnorm.data();
  step.measure(bounded ? "KDA in chunks" : "KDA token by token", count, 0,
               [&] { step.ops().kda_grad(args); });
}

void attention(Step& step) {
  constexpr size_t kHeads = 4, kNope = 32, kRope = 16, kV = 64;
  Block q(kHeads * (kNope + kRope)), kv(kHeads * (kNope + kV)), in(432), dout(kHeads * kV),
      dq(kHeads * (kNope + kRope)), dkv(kHeads * (kNope + kV)), din(432);
  kernels::AttentionGrad<float> args;
  args.heads = kHeads, args.d_nope = kNope, args.d_rope = kRope, args.d_v = kV;
  args.sequences = kSequences;
  args.q = q.grid(), args.kv = kv.grid(), args.k_rope = in.grid(160), args.gate = in.grid(176);
  args.dout = dout.grid(), args.dq = dq.grid(), args.dkv = dkv.grid();
  args.dk_rope = din.grid(160), args.dgate = din.grid(176);
  step.measure("attention", kMlaLayers, 0, [&] { step.ops().attention_grad(args); });
}

void gated(Step& step, const std::string& name, size_t count, size_t rows, size_t width,
           bool shared) {
  Block in(2 * width, rows), dout(width, rows), din(2 * width, rows), inner(width, rows);
  const auto share = bench::floats(rows);
  std::vector<float> dshare(rows);
  kernels::GluGrad<float> args;
  args.rows = rows, args.width = width;
  args.activation = {kernels::Activation::kSiTU, 4, 25};
  args.gate = in.grid(), args.up = in.grid(width), args.dout = dout.grid();
  args.dgate = din.grid(), args.dup = din.grid(width);
  if (shared) {
    args.share = share.data(), args.dshare = dshare.data();
    args.inner = inner.grid();
  }
  step.measure(name, count, 0, [&] { step.ops().glu_grad(args); });
}

void norm(Step& step, const std::string& name, size_t count, size_t width) {
  Block x(width), dy(width), dx(width);
  const auto weight = bench::floats(width);
  std::vector<float> dweight(width);
  kernels::RmsNormGrad<float> args;
  args.rows = kRows, args.width = width;
  args.x = x.grid(), args.dy = dy.grid(), args.dx = dx.grid();
  args.weight = weight.data(), args.dweight = dweight.data();
  step.measure(name, count, 0, [&] { step.ops().rms_norm_grad(args); });
}

void residual(Step& step, size_t sources, size_t count) {
  std::vector<Block> x(sources, Block(kHidden)), dx = x;
  Block dout(kHidden);
  const auto score_norm = bench::floats(kHidden), score_proj = bench::floats(kHidden, 0.1f),
             weight = bench::floats(kHidden);
  std::vector<float> dscore_norm(kHidden), dscore_proj(kHidden), dnorm(kHidden);
  std::vector<Grid<const float>> from;
  std::vector<Grid<float>> to;
  for (size_t s = 0; s < sources; ++s) from.push_back(x[s].grid()), to.push_back(dx[s].grid());
  kernels::ResidualGrad<float> args;
  args.rows = kRows, args.width = kHidden;
  args.sources = from, args.dsources = to;
  if (sources > 1) {
    args.score_norm = score_norm.data(), args.score_proj = score_proj.data();
    args.dscore_norm = dscore_norm.data(), args.dscore_proj = dscore_proj.data();
  }
  args.norm = weight.data(), args.dnorm = dnorm.data(), args.dout = dout.grid();
  step.measure("residual mix of " + std::to_string(sources), count, 0,
               [&] { step.ops().residual_grad(args); });
}

void readout(Step& step) {
  Block router(kExperts), drouter(kExperts), logits(kVocab);
  std::vector<uint32_t> expert;
  std::vector<int32_t> target;
  for (uint32_t r = 0; r < kRows; ++r) {
    target.push_back(static_cast<int32_t>(r));
    for (uint32_t i = 0; i < kTopK; ++i) expert.push_back((r + 4 * i) % kExperts);
  }
  const auto dweight = bench::floats(kRows * kTopK);
  const std::vector<float> weight(kRows, 1.0f);
  step.measure("route", kMoeLayers, 0, [&] {
    step.ops().route_grad({kRows, kExperts, kTopK, true, 2.5f, router.grid(), expert,
                           dweight.data(), drouter.grid()});
  });
  step.measure("cross entropy", 1, 0, [&] {
    step.ops().cross_entropy({kRows, kVocab, logits.grid(), target, weight, nullptr});
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("target %s, 1 thread, %zu rows\n", kernels::cpu_target_name(), kRows);
  Step step(argc > 1 ? std::atof(argv[1]) : 0.2);
  products(step);
  kda(step, false, 0);
  kda(step, true, kKdaLayers);
  attention(step);
  gated(step, "dense activation", 1, kRows, 768, false);
  gated(step, "shared activation", kMoeLayers, kRows, 256, false);
  gated(step, "expert activation", kMoeLayers * kExperts, kRows * kTopK / kExperts, 128, true);
  norm(step, "latent norm", kMoeLayers, 128);
  norm(step, "query norm", kMlaLayers, 96);
  norm(step, "key norm", kMlaLayers, 64);
  residual(step, 1, 1);
  residual(step, 2, 8);
  residual(step, 3, 8);
  readout(step);
  step.print_sum();
  return 0;
}
