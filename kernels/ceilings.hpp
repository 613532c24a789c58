// What this machine gives at most: bytes read, bytes read and written in place, fp32 operations.
// Speeds are stated as fractions of these, measured in the same process and beside the work, since
// they drift on a shared machine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace kernels {

struct CeilingRates {
  double read = 0;    // bytes per second
  double update = 0;  // bytes per second, both directions counted
  double flops = 0;   // per second, a multiply-add being two
  void keep_best(const CeilingRates& other);
};

class Ceilings {
 public:
  // `now_s` is the clock that measures passes; the default is steady time. One that counts the
  // calling thread's CPU time sees through other load, with one thread.
  explicit Ceilings(unsigned threads, std::function<double()> now_s = {});
  ~Ceilings();
  Ceilings(const Ceilings&) = delete;
  Ceilings& operator=(const Ceilings&) = delete;

  // Passes of all three in turn for about `seconds`, at least one of each; the best count. A pass
  // lasts about `pass_s`, but half a millisecond at least. Compare work with passes as long as its
  // own: for a moment a shared machine gives more than it gives for the time of a whole step, even
  // to a loop that does nothing but read.
  CeilingRates measure(double seconds, double pass_s = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernels
