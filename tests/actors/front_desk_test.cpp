#include "actors/front_desk.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "actors/telemetry.hpp"

using actors::FrontDesk;
using kernels::ErrorCode;

TEST_CASE("The desk refuses before it is open, when full, and after it closed", "[actors]") {
  FrontDesk desk(2);
  CHECK(desk.admit("a").error().code == ErrorCode::kUnavailable);
  desk.open({}, nullptr);
  const auto first = desk.admit("a");
  const auto second = desk.admit("b");
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(desk.admit("c").error().code == ErrorCode::kFull);
  CHECK(desk.rejected_total() == 1);
  desk.release(*first);
  desk.release(*first);  // idempotent
  REQUIRE(desk.admit("c").has_value());
  CHECK(desk.open_count() == 2);
  desk.close();
  desk.release(*second);
  CHECK(desk.admit("d").error().code == ErrorCode::kUnavailable);
}

TEST_CASE("A desk that failed says why, and keeps the first reason", "[actors]") {
  FrontDesk desk(1);
  desk.fail("model.safetensors is missing");
  desk.fail("something later");
  CHECK_THROWS_WITH(desk.wait_ready(), "model.safetensors is missing");
  CHECK_FALSE(desk.ready());
  CHECK(desk.admit("a").error().message.find("model.safetensors") != std::string::npos);
}

TEST_CASE("The desk agrees with a set of open requests for any history", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  FrontDesk desk(5);
  desk.open({}, nullptr);
  std::set<runtime::RequestId> open;
  for (int step = 0; step < 200; ++step) {
    if (rng() % 2 == 0) {
      const auto id = desk.admit(rng() % 2 == 0 ? "even" : "odd");
      REQUIRE(id.has_value() == (open.size() < 5));
      if (id) REQUIRE(open.insert(*id).second);
    } else if (!open.empty()) {
      const auto id = *open.begin();
      REQUIRE(desk.cancel(id));
      REQUIRE(desk.cancelled(id));
      desk.release(id);
      REQUIRE_FALSE(desk.cancel(id));
      open.erase(id);
    }
    REQUIRE(desk.open_count() == open.size());
    REQUIRE(desk.matching("").size() == open.size());
    REQUIRE(desk.matching("even").size() + desk.matching("odd").size() == open.size());
  }
}

TEST_CASE("A histogram counts a value in the first bucket that holds it", "[actors]") {
  actors::Histogram histogram{{1, 2, 4}, {0, 0, 0, 0}, 0};
  for (const double value : {0.5, 1.0, 1.5, 4.0, 9.0}) histogram.observe(value);
  CHECK(histogram.counts == std::vector<uint64_t>{2, 1, 1, 1});
  CHECK(histogram.sum == Approx(16.0));
}

TEST_CASE("Throughput is tokens over the last seconds only", "[actors]") {
  uint64_t now = 10'000'000'000;
  actors::Telemetry telemetry([&now] { return now; });
  runtime::SchedulerStats stats;
  for (int i = 0; i < 200; ++i) {  // 20 s at 100 tokens per 100 ms
    stats.generation_tokens_total += 100;
    telemetry.publish(stats);
    now += 100'000'000;
  }
  CHECK(telemetry.snapshot().gen_throughput == Approx(1000).epsilon(0.05));
  now += 60'000'000'000;
  CHECK(telemetry.snapshot().gen_throughput == Approx(0).margin(1));
}
