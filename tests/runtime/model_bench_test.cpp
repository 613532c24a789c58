// The model benchmark measures what it says, on a model small enough for a test.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/bench_report.hpp"

namespace {

using runtime::BenchPoint;

constexpr auto kPrefill = BenchPoint::Kind::kPrefill;
constexpr auto kDecode = BenchPoint::Kind::kDecode;

runtime::EngineConfig tiny() {
  runtime::EngineConfig config;
  config.model = SLUICE_SOURCE_DIR "/config/models/tiny-k3";
  config.threads = 2;
  config.chunk_tokens = 64;
  return config;
}

}  // namespace

TEST_CASE("Names of bench points are read as they are written", "[runtime][bench]") {
  const std::vector<BenchPoint> points = {
      {kPrefill, 512, 0}, {kDecode, 1, 0}, {kDecode, 16, 0}, {kDecode, 2, 32768}};
  for (const BenchPoint& point : points)
    CHECK(runtime::parse_bench_point(to_string(point)).value() == point);
  CHECK(to_string(points[3]) == "decode_2_depth_32768");
  for (const char* wrong :
       {"", "prefill", "prefill_", "prefill_0", "prefill_12x", "prefill_512_depth_3", "decode_-1",
        "decode_1_depth_", "decode_9999", "decode_1 ", "load_3", "prefill_99999999999999"}) {
    CAPTURE(wrong);
    const auto parsed = runtime::parse_bench_point(wrong);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().message.find("prefill_N") != std::string::npos);
  }
}

TEST_CASE("A list of bench points puts what a depth is judged by before it", "[runtime][bench]") {
  const auto points = runtime::parse_bench_points("prefill_128,decode_2_depth_64").value();
  CHECK(points == std::vector<BenchPoint>{{kPrefill, 128, 0}, {kDecode, 2, 0}, {kDecode, 2, 64}});
  CHECK(runtime::parse_bench_points("prefill_128,").has_error());
  CHECK(runtime::default_bench_points(false).size() == 13);
  CHECK(runtime::default_bench_points(true).back() == BenchPoint{kDecode, 1, 32768});
}

TEST_CASE("Each bench point gets a figure, in the table and in the object", "[runtime][bench]") {
  runtime::BenchOptions options;
  options.repeat = 1;
  options.points =
      runtime::parse_bench_points("prefill_100,decode_1,decode_3,decode_1_depth_200").value();
  std::vector<std::string> rows;
  const auto report = runtime::bench_model(tiny(), options, [&](const runtime::BenchFigure& f) {
    rows.push_back(runtime::bench_table_row(f));
  });
  REQUIRE(report.figures.size() == 4);
  CHECK(rows.size() == 4);
  const std::string json = runtime::bench_json(report);
  const auto object = boost::json::parse(json).as_object();
  for (const runtime::BenchFigure& figure : report.figures) {
    CAPTURE(to_string(figure.point));
    // As text: the parser may miss the nearest double by one.
    const std::string value = boost::json::serialize(boost::json::value(figure.tokens_per_s));
    CHECK_THAT(json, Catch::Contains(to_string(figure.point) + "\":" + value));
    CHECK(figure.tokens_per_s > 0);
    CHECK(figure.rates.read > 0);
    CHECK(figure.rates.flops > 0);
    if (figure.point.depth == 0) CHECK(figure.fraction > 0);
  }
  // 7 mixtures with 4 experts of 16 for each row.
  CHECK(report.figures[1].experts == 7 * 4);
  CHECK(report.figures[2].experts >= 7 * 4);
  CHECK(report.figures[2].experts <= 7 * 12);
  CHECK(object.at("threads").as_int64() == 2);
}

TEST_CASE("A bench that cannot run says which setting is wrong", "[runtime][bench]") {
  const auto run = [](const runtime::EngineConfig& config, const BenchPoint& point) {
    runtime::BenchOptions options;
    options.points = {point};
    runtime::bench_model(config, options, [](const runtime::BenchFigure&) {});
  };
  CHECK_THROWS_WITH(run(tiny(), {kDecode, 65, 0}), Catch::Contains("chunk-tokens"));
  CHECK_THROWS_WITH(run(tiny(), {kDecode, 64, 1u << 20}), Catch::Contains("memory-gb"));
  auto config = tiny();
  config.device = "null";
  CHECK_THROWS_WITH(run(config, {kDecode, 1, 0}), Catch::Contains("device"));
}
