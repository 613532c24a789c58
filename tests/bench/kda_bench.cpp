// Kimi Delta Attention between its projections: a prefill chunk of one sequence, and one token for
// many, each with its own state. Beside the whole operation the recurrence alone, to which the
// multiply-adds and the state's bytes that both are measured by belong.
//   bench-kda [threads]
#include "kernels/base/aligned_memory.hpp"
#include "kernels/base/row_step.hpp"
#include "kernels/cpu/kda.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/device.hpp"
#include "tests/bench/timing.hpp"

namespace {

constexpr size_t kD = 128;       // key and value width of a head
constexpr size_t kTogether = 16;  // sequences of a decode pass: half a millisecond, as ceilings

// 4 multiply-add slots for each state element and token, a slot being 2 operations of the peak.
double operations(size_t tokens, size_t heads) {
  return 8.0 * static_cast<double>(tokens * heads * kD * kD);
}

// Rows of random numbers, laid out as a model's.
class RandomRows {
 public:
  RandomRows(size_t rows, size_t width)
      : ld_(kernels::row_step(width)),
        memory_(kernels::allocate_aligned(rows * ld_ * sizeof(float))) {
    const auto values = bench::floats(rows * ld_);
    std::copy(values.begin(), values.end(), data());
  }
  kernels::MutableRows from(size_t column) const { return {data() + column, ld_}; }

 private:
  float* data() const { return static_cast<float*>(memory_.get()); }
  size_t ld_;
  kernels::AlignedMemory memory_;
};

struct Shape {
  const char* name;
  size_t heads, tokens, sequences;
};

void bench_operation(bench::Run& run, const Shape& shape) {
  const size_t width = shape.heads * kD, rows = shape.tokens * shape.sequences;
  const size_t state = width * kD, slot = state + 9 * width;  // recurrent, then 3 rows of 3 widths
  const RandomRows in(rows, 4 * width + shape.heads), decay(rows, width), out(rows, width);
  const auto conv = bench::floats(12 * width), a_log = bench::floats(shape.heads),
             dt_bias = bench::floats(width);
  const std::vector<float> norm(kD, 1.0f);
  const auto device = kernels::make_cpu_device();
  const kernels::Buffer states = device->allocate(shape.sequences * slot * sizeof(float));
  std::vector<kernels::Segment> segments;
  for (uint32_t i = 0; i < shape.sequences; ++i) {
    const auto tokens = static_cast<uint32_t>(shape.tokens);
    segments.push_back({i % static_cast<uint32_t>(kTogether) * tokens, tokens, 0, i, 0});
  }
  kernels::KdaArgs args;
  args.heads = shape.heads;
  args.d = kD;
  args.qkv = in.from(0);
  args.gate = in.from(3 * width);
  args.beta = in.from(4 * width);
  args.decay = decay.from(0);
  args.conv = conv.data();
  args.a_log = a_log.data();
  args.dt_bias = dt_bias.data();
  args.has_lower_bound = true;
  args.lower_bound = -5.0f;
  args.norm = norm.data();
  args.state_base = states.data();
  args.slot_stride = slot * sizeof(float);
  args.conv_offset = state * sizeof(float);
  args.out = out.from(0);

  const size_t together = std::min(kTogether, shape.sequences);
  bench::Work work;
  work.flops = operations(shape.tokens * together, shape.heads);
  if (shape.tokens == 1)  // with the window of the convolution
    work.update_bytes = 2.0 * sizeof(float) * static_cast<double>(together * slot);
  size_t first = 0;
  run.report(std::string(shape.name) + ", all of it", work, [&] {
    const auto some = std::span(segments).subspan(first, together);
    run.ops().kda(args, {some, {}, static_cast<uint32_t>(shape.tokens * together)});
    first = (first + together) % shape.sequences;
  });
}

// The sweep of prepared tokens over states that are in a cache (prefill) or not (decode).
void bench_recurrence(bench::Run& run, const Shape& shape) {
  kernels::cpu::ThreadPool pool(run.threads());
  const size_t floats = kernels::cpu::kda_token_floats(kD), states = shape.heads * shape.sequences;
  const RandomRows scratch(run.threads(), floats);
  const auto device = kernels::make_cpu_device();
  const kernels::Buffer memory = device->allocate(states * kD * kD * sizeof(float));
  float* const state = reinterpret_cast<float*>(memory.data());
  std::fill(state, state + states * kD * kD, 0.5f);

  const size_t together = shape.heads * std::min(kTogether, shape.sequences);
  bench::Work work;
  work.flops = operations(shape.tokens * together, 1);
  if (shape.tokens == 1)
    work.update_bytes = 2.0 * sizeof(float) * static_cast<double>(together * kD * kD);
  size_t first = 0;
  run.report(std::string(shape.name) + ", recurrence", work, [&] {
    pool.parallel_for(together, [&](size_t i, unsigned thread) {
      const auto rows = scratch.from(0);
      const kernels::cpu::KdaTokens tokens(rows.data + thread * rows.ld, kD);
      for (size_t t = 0; t < shape.tokens; t += kernels::cpu::kKdaChunk) {
        const size_t count = std::min(kernels::cpu::kKdaChunk, shape.tokens - t);
        kernels::cpu::kda_recurrence(tokens, count, state + (first + i) * kD * kD);
      }
    });
    first = (first + together) % states;
  });
}

void bench_kda(bench::Run& run, const Shape& shape) {
  bench_recurrence(run, shape);
  bench_operation(run, shape);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Run run(argc, argv);
  bench_kda(run, {"KDA prefill 64, 16 heads", 16, 64, 1});
  bench_kda(run, {"KDA prefill 512, 8 heads", 8, 512, 1});
  bench_kda(run, {"KDA decode 16 of 64, 16 heads", 16, 1, 64});
  bench_kda(run, {"KDA decode 16 of 128, 8 heads", 8, 1, 128});
  return 0;
}
