// CPU kernels as fractions of what this machine reads and multiplies, both measured beside them in
// the same process.
//   bench-kernels [threads]
// With one thread times are the thread's CPU time, so that a busy machine's other work counts less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/kernels_bench.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

// 12 independent chains; returns a value so that the loop is not removed. 24 * kWidth flops a turn.
float multiply_for(size_t turns) {
  Lanes sum[12];
  for (auto& s : sum) s = Lanes(1.0f);
  const Lanes a(0.999f), b(0.001f);
  for (size_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = multiply_add(sum[j], a, b);
  }
  Lanes total = Lanes::zero();
  for (auto& s : sum) total = total + s;
  return total.first() * static_cast<float>(kWidth);
}

float read_all(const float* data, size_t count) {  // a multiple of 8 * kWidth
  Lanes sum[8];
  for (auto& s : sum) s = Lanes::zero();
  for (size_t i = 0; i < count; i += 8 * kWidth) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) sum[j] = sum[j] + Lanes::load(data + i + j * kWidth);
  }
  Lanes total = Lanes::zero();
  for (auto& s : sum) total = total + s;
  return total.first();
}

// In place, as a recurrent state is used.
float update_all(float* data, size_t count) {
  const Lanes a(0.999f);
  for (size_t i = 0; i < count; i += kWidth) (Lanes::load(data + i) * a).store(data + i);
  return data[0];
}

size_t width_of() { return kWidth; }

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/device.hpp"
#include "kernels/ops.hpp"

namespace kernels {
HWY_EXPORT(multiply_for);
HWY_EXPORT(read_all);
HWY_EXPORT(update_all);
HWY_EXPORT(width_of);
}  // namespace kernels

namespace {

using namespace kernels;
volatile float sink;  // keeps results alive

clockid_t clock_used = CLOCK_MONOTONIC;

double now_s() {
  timespec t;
  ::clock_gettime(clock_used, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds_of(const std::function<void()>& fn) {
  const double begin = now_s();
  fn();
  return now_s() - begin;
}

struct Timing {
  double best, median;
};

// Repeats a short pass for about `budget_s`; the best pass is the one the machine disturbed least.
Timing measure(const std::function<void()>& fn, double budget_s = 0.4) {
  fn();
  std::vector<double> times;
  for (double total = 0; total < budget_s || times.size() < 5; total += times.back())
    times.push_back(seconds_of(fn));
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

constexpr size_t kSetFloats = size_t{64} << 20;  // 256 MB: far beyond the last-level cache

class Machine {
 public:
  explicit Machine(unsigned threads) : pool_(threads), data_(kSetFloats, 0.5f) {}

  // Each ceiling is measured again beside every kernel, since it drifts on a shared machine.
  double read_bandwidth() {
    constexpr size_t kPass = size_t{8} << 20;
    const auto read = [](float* p, size_t n) { return HWY_DYNAMIC_DISPATCH(read_all)(p, n); };
    return 4.0 * kPass / measure([&] { each_part(kPass, read); }).best;
  }
  double update_bandwidth() {
    constexpr size_t kPass = size_t{8} << 20;
    const auto update = [](float* p, size_t n) { return HWY_DYNAMIC_DISPATCH(update_all)(p, n); };
    return 8.0 * kPass / measure([&] { each_part(kPass, update); }).best;
  }
  double flops() {
    constexpr size_t kTurns = 400000;
    const double per_pass =
        24.0 * static_cast<double>(HWY_DYNAMIC_DISPATCH(width_of)() * kTurns * pool_.size());
    const auto multiply = [](size_t, unsigned) {
      sink = HWY_DYNAMIC_DISPATCH(multiply_for)(kTurns);
    };
    return per_pass / measure([&] { pool_.parallel_for(pool_.size(), multiply); }).best;
  }

 private:
  template <class Fn>
  void each_part(size_t pass, const Fn& fn) {
    offset_ = (offset_ + pass) % (kSetFloats - pass);
    const size_t parts = pool_.size() * 8, step = pass / parts / 64 * 64;
    pool_.parallel_for(
        parts, [&](size_t i, unsigned) { sink = fn(data_.data() + offset_ + i * step, step); });
  }

  cpu::ThreadPool pool_;
  std::vector<float> data_;
  size_t offset_ = 0;
};

void report(const char* name, const Timing& t, double amount, const char* unit, double ceiling) {
  std::printf("%-34s best %9.3f ms  median %9.3f ms  %7.1f %s = %.2f of %.1f\n", name, t.best * 1e3,
              t.median * 1e3, amount / t.best / 1e9, unit, amount / t.best / ceiling,
              ceiling / 1e9);
}

std::vector<float> floats(size_t count, float scale = 1.0f) {
  static std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(rng);
  return values;
}

// Enough copies of an n x k matrix that a pass over all of them does not fit a cache.
std::vector<MatrixPtr> matrices(Ops& ops, DType dtype, size_t n, size_t k, size_t count) {
  std::vector<uint8_t> bytes(dtype == DType::kMXFP4 ? n * k / 2 : n * k * dtype_bytes(dtype));
  std::vector<uint8_t> scale(n * k / 32, 120);
  std::mt19937 rng(2);
  if (dtype == DType::kMXFP4) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  } else {
    for (size_t i = 0; i < n * k; ++i) {
      const uint16_t bits = float_to_bf16(static_cast<float>(rng() % 2001) / 1000.0f - 1.0f);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
  std::vector<MatrixPtr> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(ops.pack({dtype, bytes.data(), scale.data(), n, k, k, 1}));
  return result;
}

void bench_matmul(Ops& ops, Machine& machine, DType dtype) {
  constexpr size_t kN = 4096, kK = 1024;
  const auto set = matrices(ops, dtype, kN, kK, dtype == DType::kMXFP4 ? 96 : 32);
  const auto x = floats(512 * kK);
  std::vector<float> y(512 * kN), single(kN);
  ops.matmul({x.data(), kK}, *set[0], {single.data(), kN}, 1);
  for (const size_t rows : {1u, 2u, 4u, 8u, 16u, 512u}) {
    size_t at = 0;
    const size_t per_pass = rows == 512 ? 1 : 4;
    const Timing t = measure([&] {
      for (size_t i = 0; i < per_pass; ++i)
        ops.matmul({x.data(), kK}, *set[at++ % set.size()], {y.data(), kN}, rows);
    });
    if (std::memcmp(y.data(), single.data(), kN * sizeof(float)) != 0)
      std::printf("WRONG: rows %zu differ from 1 row\n", rows);
    char name[64];
    std::snprintf(name, sizeof name, "%s 4096x1024, %zu rows",
                  std::string(to_string(dtype)).c_str(), rows);
    const auto scale = static_cast<double>(per_pass);
    if (rows <= 4)
      report(name, t, scale * static_cast<double>(set[0]->bytes()), "GB/s",
             machine.read_bandwidth());
    if (rows >= 4 || dtype == DType::kMXFP4) {
      report(name, t, scale * 2.0 * kN * kK * static_cast<double>(rows), "GF/s", machine.flops());
    }
  }
}

void bench_kda(Ops& ops, Machine& machine, size_t tokens, size_t sequences) {
  constexpr size_t kHeads = 16, kD = 128, kWidth = kHeads * kD;
  const size_t rows = tokens * sequences, slot = kHeads * kD * kD + 9 * kWidth;
  const auto qkv = floats(rows * 3 * kWidth), decay = floats(rows * kWidth),
             beta = floats(rows * kHeads);
  const auto gate = floats(rows * kWidth), conv = floats(12 * kWidth), a_log = floats(kHeads),
             dt = floats(kWidth);
  const std::vector<float> norm(kD, 1.0f);
  const auto device = make_cpu_device();
  const Buffer states = device->allocate(sequences * slot * sizeof(float));
  std::vector<float> out(rows * kWidth);
  std::vector<Segment> segments;
  for (uint32_t i = 0; i < sequences; ++i) {
    segments.push_back({i * static_cast<uint32_t>(tokens), static_cast<uint32_t>(tokens), 0, i, 0});
  }
  KdaArgs args;
  args.heads = kHeads;
  args.d = kD;
  args.qkv = {qkv.data(), 3 * kWidth};
  args.decay = {decay.data(), kWidth};
  args.beta = {beta.data(), kHeads};
  args.gate = {gate.data(), kWidth};
  args.conv = conv.data();
  args.a_log = a_log.data();
  args.dt_bias = dt.data();
  args.has_lower_bound = true;
  args.lower_bound = -5.0f;
  args.norm = norm.data();
  args.state_base = states.data();
  args.slot_stride = slot * sizeof(float);
  args.conv_offset = kHeads * kD * kD * sizeof(float);
  args.out = {out.data(), kWidth};
  const Timing t = measure([&] { ops.kda(args, {segments, {}, static_cast<uint32_t>(rows)}); });
  if (tokens == 1) {
    const double bytes = 8.0 * static_cast<double>(sequences * kHeads * kD * kD);
    report("KDA decode, 16 heads of 128", t, bytes, "GB/s", machine.update_bandwidth());
  } else {
    // 4 FMA slots for each state element and token, a slot being 2 flops of peak.
    const double slots = 8.0 * static_cast<double>(rows * kHeads * kD * kD);
    report("KDA prefill, 16 heads of 128", t, slots, "GF/s", machine.flops());
  }
}

void bench_mla(Ops& ops, Machine& machine, DType kv_dtype) {
  constexpr size_t kHeads = 8, kNope = 128, kRope = 64, kValue = 128, kLatent = 512,
                   kContext = 32768, kPage = 64;
  const size_t page_bytes = kPage * (kLatent + kRope) * dtype_bytes(kv_dtype);
  const auto device = make_cpu_device();
  const Buffer cache = device->allocate(kContext / kPage * page_bytes);
  std::memset(cache.data(), 0, cache.bytes());
  std::vector<uint32_t> pages(kContext / kPage);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<uint32_t>(i);
  const auto q = floats(kHeads * (kNope + kRope)), ckv = floats(kLatent + kRope),
             ones = std::vector<float>(kLatent, 1.0f);
  std::vector<MatrixPtr> absorb_k, absorb_v;
  for (size_t h = 0; h < kHeads; ++h) {
    absorb_k.push_back(std::move(matrices(ops, DType::kBF16, kLatent, kNope, 1)[0]));
    absorb_v.push_back(std::move(matrices(ops, DType::kBF16, kValue, kLatent, 1)[0]));
  }
  std::vector<float> out(kHeads * kValue);
  MlaArgs args;
  args.heads = kHeads;
  args.d_nope = kNope;
  args.d_rope = kRope;
  args.d_v = kValue;
  args.kv_lora = kLatent;
  args.q = {q.data(), q.size()};
  args.ckv = {ckv.data(), ckv.size()};
  args.kv_norm = ones.data();
  args.absorb_k = absorb_k;
  args.absorb_v = absorb_v;
  args.page_base = cache.data();
  args.page_stride = page_bytes;
  args.kv_dtype = kv_dtype;
  args.out = {out.data(), out.size()};
  const Segment segment = {0, 1, kContext - 1, 0, 0};
  const Timing t = measure([&] { ops.mla(args, {{&segment, 1}, pages, 1}); });
  const double flops = 2.0 * kHeads * kContext * (2 * kLatent + kRope);
  report(kv_dtype == DType::kF32 ? "MLA decode 32k, 8 heads, F32" : "MLA decode 32k, 8 heads, BF16",
         t, flops, "GF/s", machine.flops());
}

void print_load() {
  double load[3] = {};
  if (::getloadavg(load, 3) == 3)
    std::printf("load average %.2f %.2f %.2f\n", load[0], load[1], load[2]);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::max(1, std::atoi(argv[1]))) : all;
  if (threads == 1) clock_used = CLOCK_THREAD_CPUTIME_ID;
  const auto ops = make_cpu_ops(threads);
  Machine machine(threads);
  std::printf("target %s, %u threads; fractions are of ceilings measured beside each line\n",
              cpu_target_name(), threads);
  print_load();
  bench_matmul(*ops, machine, DType::kBF16);
  bench_matmul(*ops, machine, DType::kMXFP4);
  bench_kda(*ops, machine, 64, 1);
  bench_kda(*ops, machine, 1, 64);
  bench_mla(*ops, machine, DType::kF32);
  bench_mla(*ops, machine, DType::kBF16);
  print_load();
  return 0;
}
#endif
