#include "kernels/ceilings.hpp"

#include "kernels/cpu/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ceilings.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/lanes.hpp"

KERNEL_NAMESPACE_BEGIN
namespace {

constexpr size_t kChains = 12;  // hide the latency of a multiply-add: 4 cycles, two per cycle

// 2 * kChains * kWidth operations a turn. The chains differ and start from a value that the
// compiler does not know, so that all of them are computed.
float multiply_for(size_t turns, float start) {
  Lanes sum[kChains];
#pragma GCC unroll 12
  for (size_t j = 0; j < kChains; ++j) sum[j] = Lanes(start + static_cast<float>(j));
  const Lanes a(0.999f), b(0.001f);
  for (size_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (size_t j = 0; j < kChains; ++j) sum[j] = multiply_add(sum[j], a, b);
  }
  Lanes total = Lanes::zero();
#pragma GCC unroll 12
  for (size_t j = 0; j < kChains; ++j) total = total + sum[j];
  return total.first();
}

size_t operations_per_turn() { return 2 * kChains * kWidth; }

// Four streams side by side, as a product with one row reads its panels; count is a multiple of
// 16 * kWidth.
float read_all(const float* data, size_t count) {
  const size_t quarter = count / 4;
  Lanes sum[8];
#pragma GCC unroll 8
  for (auto& s : sum) s = Lanes::zero();
  for (size_t i = 0; i < quarter; i += 2 * kWidth) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const float* const at = data + j * quarter + i;
      sum[2 * j] = sum[2 * j] + Lanes::load(at);
      sum[2 * j + 1] = sum[2 * j + 1] + Lanes::load(at + kWidth);
    }
  }
  Lanes total = Lanes::zero();
#pragma GCC unroll 8
  for (auto& s : sum) total = total + s;
  return total.first();
}

// In place, as a recurrent state is used; count is a multiple of kWidth.
float update_all(float* data, size_t count) {
  for (size_t i = 0; i < count; i += kWidth)
    (Lanes::zero() - Lanes::load(data + i)).store(data + i);
  return data[0];
}

}  // namespace
KERNEL_NAMESPACE_END

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/base/steady_clock.hpp"
#include "kernels/base/verify.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/device.hpp"

namespace kernels {
namespace {

HWY_EXPORT(multiply_for);
HWY_EXPORT(operations_per_turn);
HWY_EXPORT(read_all);
HWY_EXPORT(update_all);

constexpr size_t kSetBytes = size_t{256} << 20;  // far beyond a last-level cache; passes rotate
// The shortest pass, about half a millisecond: less than a time slice. Longer ones are many of it.
constexpr size_t kPassBytes = size_t{8} << 20;
constexpr size_t kTurns = 100000;
constexpr size_t kPartsPerThread = 8;  // a disturbed thread leaves parts to the others

double steady_s() { return 1e-9 * static_cast<double>(steady_now_ns()); }

}  // namespace

void CeilingRates::keep_best(const CeilingRates& other) {
  read = std::max(read, other.read);
  update = std::max(update, other.update);
  flops = std::max(flops, other.flops);
}

struct Ceilings::Impl {
  Impl(unsigned threads, std::function<double()> clock)
      : now_s(clock ? std::move(clock) : steady_s),
        pool(threads),
        device(make_cpu_device()),
        memory(device->allocate(kSetBytes)) {
    auto* const data = reinterpret_cast<float*>(memory.data());
    std::fill(data, data + kSetBytes / sizeof(float), 0.5f);
  }

  template <class Work>
  double seconds_of(const Work& work) const {
    const double begin = now_s();
    work();
    return now_s() - begin;
  }

  // How many shortest passes, of which one takes `shortest()` seconds, last `pass_s` together.
  template <class Pass>
  static size_t repeats(double pass_s, const Pass& shortest) {
    return pass_s <= 0 ? 1 : std::max<size_t>(1, static_cast<size_t>(pass_s / shortest()));
  }

  // Seconds of work(float* part, size_t count) over the next repeat * kPassBytes of the set.
  template <class Work>
  double seconds_over(size_t repeat, const Work& work) {
    const size_t parts = pool.size() * kPartsPerThread;
    auto* const data = reinterpret_cast<float*>(memory.data());
    const double seconds = seconds_of([&] {
      pool.parallel_for(repeat * parts, [&](size_t i, unsigned) {
        const size_t at = (offset + i / parts * kPassBytes) % kSetBytes / sizeof(float);
        sink = work(data + at + i % parts * part_floats(), part_floats());
      });
    });
    offset = (offset + repeat * kPassBytes) % kSetBytes;
    return seconds;
  }
  size_t part_floats() const {
    return kPassBytes / sizeof(float) / (pool.size() * kPartsPerThread) / 256 * 256;
  }

  template <class Work>
  double bytes_per_second(double pass_s, const Work& work) {
    const size_t repeat = repeats(pass_s, [&] { return seconds_over(1, work); });
    const size_t floats = repeat * pool.size() * kPartsPerThread * part_floats();
    return static_cast<double>(floats * sizeof(float)) / seconds_over(repeat, work);
  }

  double seconds_of_turns(size_t repeat) {
    return seconds_of([&] {
      pool.parallel_for(repeat * pool.size() * kPartsPerThread, [&](size_t, unsigned) {
        sink = HWY_DYNAMIC_DISPATCH(multiply_for)(kTurns / kPartsPerThread, sink);
      });
    });
  }

  CeilingRates pass(double pass_s) {
    CeilingRates rates;
    rates.read = bytes_per_second(pass_s, [](const float* part, size_t count) {
      return HWY_DYNAMIC_DISPATCH(read_all)(part, count);
    });
    rates.update = 2 * bytes_per_second(pass_s, [](float* part, size_t count) {
                     return HWY_DYNAMIC_DISPATCH(update_all)(part, count);
                   });
    const size_t repeat = repeats(pass_s, [&] { return seconds_of_turns(1); });
    const size_t turns = repeat * pool.size() * (kTurns / kPartsPerThread * kPartsPerThread);
    rates.flops = static_cast<double>(HWY_DYNAMIC_DISPATCH(operations_per_turn)() * turns) /
                  seconds_of_turns(repeat);
    return rates;
  }

  std::function<double()> now_s;
  cpu::ThreadPool pool;
  std::unique_ptr<Device> device;
  Buffer memory;
  size_t offset = 0;
  std::atomic<float> sink{0};  // keeps results alive
};

Ceilings::Ceilings(unsigned threads, std::function<double()> now_s)
    : impl_(std::make_unique<Impl>(threads, std::move(now_s))) {}

Ceilings::~Ceilings() = default;

CeilingRates Ceilings::measure(double seconds, double pass_s) {
  const double end = impl_->now_s() + seconds;
  CeilingRates best;
  do {
    best.keep_best(impl_->pass(pass_s));
  } while (impl_->now_s() < end);
  return best;
}

}  // namespace kernels
#endif
