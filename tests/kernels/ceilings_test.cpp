// Ceilings are of this machine's size on every SIMD target, and a given clock is used.
#include "kernels/ceilings.hpp"

#include <catch2/catch.hpp>

TEST_CASE("Measured ceilings are plausible for any machine", "[kernels][ceilings]") {
  const unsigned threads = GENERATE(1u, 3u);
  kernels::Ceilings ceilings(threads);
  const kernels::CeilingRates rates = ceilings.measure(0.02);
  CHECK(rates.read > 1e7);
  CHECK(rates.update > 1e7);
  CHECK(rates.flops > 1e7);
  CHECK(rates.read < 1e13);
  CHECK(rates.update < 1e13);
  CHECK(rates.flops < 1e14);
}

TEST_CASE("Ceilings are measured with the clock they are given", "[kernels][ceilings]") {
  double now = 0;
  kernels::Ceilings ceilings(1, [&now] { return now += 1.0; });  // every pass takes a second
  const kernels::CeilingRates rates = ceilings.measure(0);
  CHECK(rates.read == 8.0 * 1024 * 1024);
  CHECK(rates.update == 2 * rates.read);
}

TEST_CASE("Of two measurements each rate keeps its better one", "[kernels][ceilings]") {
  kernels::CeilingRates rates{1, 5, 3};
  rates.keep_best({2, 4, 3});
  CHECK(rates.read == 2);
  CHECK(rates.update == 5);
  CHECK(rates.flops == 3);
}
