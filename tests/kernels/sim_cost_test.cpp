// Each cost formula of the modelled device against numbers worked out by hand.
#include <catch2/catch.hpp>

#include "kernels/sim/attention_cost.hpp"
#include "kernels/sim/product_cost.hpp"
#include "kernels/sim/roofline_cost.hpp"
#include "kernels/sim/transfer_cost.hpp"

namespace {

using kernels::DeviceParams;

// Rates that make waves and bytes come out even.
DeviceParams device() {
  DeviceParams d;
  d.multiprocessors = 4;
  d.kernel_us = 3;
  d.weight_bytes_per_us = 1000;
  d.gemm_flops_per_us = 4.0 * 2 * 128 * 128 * 128;  // a wave at k = 128 takes 1 us
  d.moe_us = 25;
  d.expert_us = 0.5;
  d.expert_bytes_per_us = 50;
  d.expert_flops_per_us = 100;
  d.expert_row_us = 0.25;
  d.expert_imbalance_few = 1.25;
  d.expert_imbalance_many = 1.5;
  d.kda_token_head_us = 0.5;
  d.kda_conv_token_head_us = 0.25;
  d.kda_sequential_us = 2;
  d.kda_decode_min_us = 8.5;
  d.state_bytes_per_us = 2.0 * 12 * 65536;  // a row of 12 heads takes 1 us
  d.kda_verify_us = 3;
  d.kda_verify_width_us = 2.6;
  d.kda_verify_row_us = 0.85;
  d.kda_verify_row_width_us = 0.17;
  d.mla_flops_per_us = 1e4;
  d.mla_decode_us = 11;
  d.kv_bytes_per_us = 1e4;
  d.mla_decode_flops_per_us = 1e6;
  d.stream_bytes_per_us = 100;
  d.all_reduce_2_us = 4.5;
  d.all_reduce_4_us = 5;
  d.all_reduce_8_us = 10.9;
  d.bus_bytes_per_us = 600;
  d.peer_bytes_per_us = 700;
  d.host_bytes_per_us = 97;
  return d;
}

constexpr double kHead = 65536;  // bytes of a 128 x 128 state in fp32

}  // namespace

TEST_CASE("A product of few rows costs its bytes and a launch", "[kernels][sim]") {
  // 2 * 256 * 128 + 2 * 64 * (256 + 128) = 114688 bytes
  CHECK(kernels::product_us(device(), {64, 256, 128}) == Approx(3 + 114.688));
  CHECK(kernels::product_waves(device(), {128, 256, 128}) == 0);
  CHECK(kernels::product_us(device(), {0, 256, 128}) == 0);
}

TEST_CASE("Products of many rows climb a staircase of waves", "[kernels][sim]") {
  DeviceParams fast = device();
  fast.weight_bytes_per_us = 1e12;  // only the waves are left
  const auto us = [&](double m) { return kernels::product_us(fast, {m, 256, 128}); };
  CHECK(us(129) == Approx(3 + 1));  // 2 x 2 tiles on 4 multiprocessors
  CHECK(us(256) == Approx(3 + 1));
  CHECK(us(257) == Approx(3 + 2));  // 3 x 2 tiles: a wave and a half
  CHECK(us(512) == Approx(3 + 2));
  CHECK(us(128 * 15) == Approx(3 + 8));    // 30 tiles: 7.5 waves
  CHECK(us(128 * 17) == Approx(3 + 8.5));  // 34 tiles: a persistent kernel from 8 waves on
  double last = 0;
  for (double m = 129; m < 3000; ++m) {
    REQUIRE(us(m) >= last);
    last = us(m);
  }
}

TEST_CASE("Routed experts cost weights of the distinct ones and rows of the busiest rank",
          "[kernels][sim]") {
  kernels::ExpertWork work{8, 20, 4, 1000, 500, 2, 4};
  // 20 / 4 * (0.5 + 500 / 2 / 50) = 27.5;  4 * 8 / 4 rows * (0.25 + 2 * 1000 / (2 * 100)) = 82
  CHECK(kernels::experts_us(device(), work) == Approx(25 + 27.5 + 1.25 * 82));
  work.groups = 8;
  CHECK(kernels::experts_us(device(), work) == Approx(25 + 13.75 + 1.5 * 41));
  work.groups = 1;
  CHECK(kernels::experts_us(device(), work) == Approx(25 + 110 + 328));
  work.tokens = 0;
  CHECK(kernels::experts_us(device(), work) == 0);
}

TEST_CASE("KDA costs tokens and heads in prefill, states in decode", "[kernels][sim]") {
  const kernels::KdaWork twelve{12, kHead};
  CHECK(kernels::kda_prefill_us(device(), twelve, 10, 4) == Approx(10 * 12 * 0.75 + 4 * 2));
  // Heads of 64 x 64 are a quarter of the work.
  CHECK(kernels::kda_prefill_us(device(), {12, kHead / 4}, 10, 4) == Approx(10 * 3 * 0.75 + 8));
  CHECK(kernels::kda_prefill_us(device(), twelve, 0, 0) == 0);
  CHECK(kernels::kda_decode_us(device(), twelve, 1) == Approx(8.5));
  CHECK(kernels::kda_decode_us(device(), twelve, 10) == Approx(3 + 10));
  CHECK(kernels::kda_decode_us(device(), twelve, 0) == 0);
}

TEST_CASE("KDA verify costs its window, or its rows once they are many", "[kernels][sim]") {
  const kernels::KdaWork twelve{12, kHead};
  CHECK(kernels::kda_verify_us(device(), twelve, 1, 8) == Approx(3 + 2.6 * 8));
  CHECK(kernels::kda_verify_us(device(), twelve, 100, 8) == Approx(3 + 100 * 0.17 * 8));
  CHECK(kernels::kda_verify_us(device(), twelve, 100, 2) == Approx(3 + 100 * 0.85));
  CHECK(kernels::kda_verify_us(device(), {24, kHead}, 100, 2) == Approx(3 + 200 * 0.85));
}

TEST_CASE("MLA costs pairs in prefill, cached bytes or many heads' products in decode",
          "[kernels][sim]") {
  const kernels::MlaWork two{2, 192, 128, 576, 512, 1152};
  CHECK(kernels::mla_prefill_us(device(), two, 1000) == Approx(2.0 * 2 * 320 * 1000 / 1e4));
  CHECK(kernels::mla_prefill_us(device(), two, 0) == 0);
  const kernels::MlaWork twelve{12, 192, 128, 576, 512, 1152};
  CHECK(kernels::mla_decode_us(device(), twelve, 1000, 1) == Approx(11 + 115.2));
  const kernels::MlaWork all{96, 192, 128, 576, 512, 1152};
  const double products = 2.0 * 96 * 1088 * 1000 / 1e6;
  CHECK(kernels::mla_decode_us(device(), all, 1000, 1) == Approx(11 + products));
  CHECK(kernels::mla_decode_us(device(), twelve, 1000, 8) == Approx(11 + products));
}

TEST_CASE("Collectives cost their latency and what crosses a rank's link", "[kernels][sim]") {
  CHECK(kernels::all_reduce_us(device(), 8, 6000) == Approx(10.9 + 17.5));
  CHECK(kernels::all_reduce_us(device(), 2, 6000) == Approx(4.5 + 10));
  CHECK(kernels::all_reduce_us(device(), 1, 6000) == 0);
  CHECK(kernels::all_reduce_us(device(), 8, 0) == 0);
  CHECK(kernels::exchange_us(device(), 4, 6000) == Approx(5 + 10));
  CHECK(kernels::stream_us(device(), 500) == Approx(3 + 5));
  CHECK(kernels::stream_us(device(), 0) == 0);
  CHECK(kernels::handoff_us(device(), 1400) == Approx(2));
  CHECK(kernels::host_load_us(device(), 970) == Approx(10));
  CHECK(kernels::has_collective(16));
  CHECK_FALSE(kernels::has_collective(6));
}

TEST_CASE("A roofline step costs the slower of bytes and operations, and overheads",
          "[kernels][sim]") {
  const kernels::RooflineParams cpu{10, 100, 50, 5, 2};
  CHECK(kernels::roofline_us(cpu, {4000, 1000, 3, 7}) == Approx(50 + 15 + 14 + 400));
  CHECK(kernels::roofline_us(cpu, {4000, 100000, 3, 7}) == Approx(50 + 15 + 14 + 1000));
  CHECK(kernels::roofline_us(cpu, {0, 0, 0, 0}) == 0);
}
