#include "actors/front_desk.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <random>

#include "actors/telemetry.hpp"

using actors::FrontDesk;
using kernels::ErrorCode;

TEST_CASE("The desk refuses before it is open, when full, and after it closed", "[actors]") {
  FrontDesk desk(2);
  CHECK(desk.admit("a", 1).error().code == ErrorCode::kUnavailable);
  desk.open({}, nullptr);
  const auto first = desk.admit("a", 1);
  const auto second = desk.admit("b", 1);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(desk.admit("c", 1).error().code == ErrorCode::kFull);
  CHECK(desk.rejected_total() == 1);
  desk.release(*first);
  desk.release(*first);  // idempotent
  REQUIRE(desk.admit("c", 1).has_value());
  CHECK(desk.open_count() == 2);
  desk.close();
  desk.release(*second);
  CHECK(desk.admit("d", 1).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("A desk that failed says why, and keeps the first reason", "[actors]") {
  FrontDesk desk(1);
  CHECK(desk.fail("model.safetensors is missing"));
  CHECK_FALSE(desk.fail("something later"));
  CHECK(desk.phase().kind == actors::ServicePhase::Kind::kFailed);
  CHECK(desk.phase().reason == "model.safetensors is missing");
  CHECK_THROWS_WITH(desk.wait_ready(), "model.safetensors is missing");
  CHECK_FALSE(desk.ready());
  CHECK(desk.admit("a", 1).error().message.find("model.safetensors") != std::string::npos);
}

TEST_CASE("A request takes a credit per choice, and one that could never fit is invalid",
          "[actors]") {
  FrontDesk desk(4);
  desk.open({}, nullptr);
  const auto first = desk.admit("a", 3);
  REQUIRE(first.has_value());
  CHECK(desk.admit("b", 2).error().code == ErrorCode::kFull);
  CHECK(desk.admit("b", 1).has_value());
  const auto huge = desk.admit("c", std::numeric_limits<uint64_t>::max());
  CHECK(huge.error().code == ErrorCode::kInvalid);
  CHECK(desk.admit("c", 5).error().message ==
        "n: the request has 5 choices (prompts times n), this server holds at most 4 "
        "(max_running_requests + max_queue)");
  CHECK(desk.rejected_total() == 1);
  desk.release(*first);
  CHECK(desk.admit("b", 3).has_value());
}

TEST_CASE("No request has more choices than one may have, however many credits there are",
          "[actors]") {
  FrontDesk desk(1'000'000);
  desk.open({}, nullptr);
  CHECK(desk.admit("a", actors::kChoicesMax).has_value());
  const auto huge = desk.admit("b", actors::kChoicesMax + 1);
  REQUIRE_FALSE(huge.has_value());
  CHECK(huge.error().code == ErrorCode::kInvalid);
  CHECK_THAT(huge.error().message, Catch::Contains("at most 1024 (one request's limit)"));
}

TEST_CASE("The desk agrees with a set of open requests for any history", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  FrontDesk desk(5);
  desk.open({}, nullptr);
  std::map<runtime::RequestId, uint64_t> open;  // and its choices
  uint64_t taken = 0;
  for (int step = 0; step < 200; ++step) {
    if (rng() % 2 == 0) {
      const uint64_t choices = 1 + rng() % 3;
      const auto id = desk.admit(rng() % 2 == 0 ? "even" : "odd", choices);
      REQUIRE(id.has_value() == (taken + choices <= 5));
      if (!id) continue;
      REQUIRE(open.emplace(*id, choices).second);
      taken += choices;
    } else if (!open.empty()) {
      const auto [id, choices] = *open.begin();
      const kernels::Error why{ErrorCode::kUnavailable, "why", {}};
      REQUIRE_FALSE(desk.cancelled(id));
      REQUIRE(desk.cancel(id, why));
      REQUIRE_FALSE(desk.cancel(id, {ErrorCode::kCancelled, "again", {}}));  // the first counts
      REQUIRE(desk.cancelled(id)->message == "why");
      desk.release(id);
      REQUIRE_FALSE(desk.cancel(id, why));
      open.erase(open.begin());
      taken -= choices;
    }
    REQUIRE(desk.open_count() == open.size());
    REQUIRE(desk.open_requests().size() == open.size());
    REQUIRE(desk.matching("").empty());
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
