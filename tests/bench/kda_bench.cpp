// Kimi Delta Attention between its projections: a prefill chunk of one sequence, and one token for
// many, each with its own state.
//   bench-kda [threads]
#include "kernels/device.hpp"
#include "tests/bench/timing.hpp"

namespace {

constexpr size_t kD = 128;  // key and value width of a head

struct Shape {
  const char* name;
  size_t heads, tokens, sequences;
};

void bench_kda(bench::Run& run, const Shape& shape) {
  const size_t width = shape.heads * kD, rows = shape.tokens * shape.sequences;
  const size_t state = width * kD, slot = state + 9 * width;  // recurrent, then 3 rows of 3 widths
  const auto qkv = bench::floats(rows * 3 * width), decay = bench::floats(rows * width),
             beta = bench::floats(rows * shape.heads), gate = bench::floats(rows * width),
             conv = bench::floats(12 * width), a_log = bench::floats(shape.heads),
             dt_bias = bench::floats(width);
  const std::vector<float> norm(kD, 1.0f);
  const auto device = kernels::make_cpu_device();
  const kernels::Buffer states = device->allocate(shape.sequences * slot * sizeof(float));
  std::vector<float> out(rows * width);
  std::vector<kernels::Segment> segments;
  for (uint32_t i = 0; i < shape.sequences; ++i) {
    const auto tokens = static_cast<uint32_t>(shape.tokens);
    segments.push_back({i * tokens, tokens, 0, i, 0});
  }
  kernels::KdaArgs args;
  args.heads = shape.heads;
  args.d = kD;
  args.qkv = {qkv.data(), 3 * width};
  args.decay = {decay.data(), width};
  args.beta = {beta.data(), shape.heads};
  args.gate = {gate.data(), width};
  args.conv = conv.data();
  args.a_log = a_log.data();
  args.dt_bias = dt_bias.data();
  args.has_lower_bound = true;
  args.lower_bound = -5.0f;
  args.norm = norm.data();
  args.state_base = states.data();
  args.slot_stride = slot * sizeof(float);
  args.conv_offset = state * sizeof(float);
  args.out = {out.data(), width};

  bench::Work work;
  // 4 multiply-add slots for each state element and token, a slot being 2 operations of the peak.
  work.flops = 8.0 * static_cast<double>(rows * state);
  if (shape.tokens == 1)
    work.update_bytes = 2.0 * sizeof(float) * static_cast<double>(shape.sequences * state);
  run.report(shape.name, work, [&] {
    run.ops().kda(args, {segments, {}, static_cast<uint32_t>(rows)});
  });
}

}  // namespace

int main(int argc, char** argv) {
  bench::Run run(argc, argv);
  bench_kda(run, {"KDA prefill 64, 16 heads", 16, 64, 1});
  bench_kda(run, {"KDA prefill 512, 8 heads", 8, 512, 1});
  bench_kda(run, {"KDA decode 1 of 64, 16 heads", 16, 1, 64});
  bench_kda(run, {"KDA decode 1 of 128, 8 heads", 8, 1, 128});
  return 0;
}
