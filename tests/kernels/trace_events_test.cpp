// A trace is valid JSON in which spans nest, and costs nothing while it is off.
#include "kernels/base/trace_events.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/traced_ops.hpp"
#include "tests/kernels/tools.hpp"

namespace {

namespace json = boost::json;
using kernels::TraceEvents;
using kernels::TraceSpan;

struct Span {
  std::string name;
  int64_t thread = 0;
  double begin = 0, end = 0;
  json::object args;
};

std::vector<Span> spans_of(const std::string& text) {
  std::vector<Span> spans;
  const json::value trace = json::parse(text);
  for (const json::value& value : trace.at("traceEvents").as_array()) {
    const json::object& event = value.as_object();
    if (event.at("ph").as_string() != "X") continue;
    Span span;
    span.name = event.at("name").as_string().c_str();
    span.thread = event.at("tid").as_int64();
    span.begin = event.at("ts").to_number<double>();
    span.end = span.begin + event.at("dur").to_number<double>();
    span.args = event.at("args").as_object();
    spans.push_back(std::move(span));
  }
  return spans;
}

const Span& find(const std::vector<Span>& spans, const std::string& name) {
  const auto found =
      std::find_if(spans.begin(), spans.end(), [&](const Span& span) { return span.name == name; });
  REQUIRE(found != spans.end());
  return *found;
}

// Two spans of a thread are one inside the other, or apart.
bool nest(const Span& a, const Span& b) {
  if (a.thread != b.thread || a.end <= b.begin || b.end <= a.begin) return true;
  return (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
}

}  // namespace

TEST_CASE("Spans of a trace nest, and carry their names and numbers", "[kernels][trace]") {
  TraceEvents::start();
  {
    const TraceSpan outer("outer", {{"step", 7}});
    { const TraceSpan first("first", {{"rows", 2}, {"n", 3}}); }
    const TraceSpan second("second");
    TraceEvents::instant("moment", {{"request", 1}});
  }
  std::thread([] { const TraceSpan other("elsewhere"); }).join();
  TraceEvents::stop();
  const auto text = TraceEvents::json();
  const auto spans = spans_of(text);
  REQUIRE(spans.size() == 4);
  for (const Span& a : spans)
    for (const Span& b : spans) CHECK(nest(a, b));
  const Span& outer = find(spans, "outer");
  const Span& first = find(spans, "first");
  CHECK(outer.args == json::object{{"step", 7}});
  CHECK(first.args == json::object{{"rows", 2}, {"n", 3}});
  CHECK(find(spans, "second").args.empty());
  CHECK(outer.begin <= first.begin);
  CHECK(first.end <= outer.end);
  CHECK(find(spans, "elsewhere").thread != outer.thread);
  CHECK(text.find("\"moment\"") != std::string::npos);
}

TEST_CASE("Nothing is kept while a trace is off", "[kernels][trace]") {
  TraceEvents::start();
  TraceEvents::stop();
  { const TraceSpan span("ignored"); }
  TraceEvents::instant("ignored", {});
  CHECK(spans_of(TraceEvents::json()).empty());
  CHECK(TraceEvents::json().find("ignored") == std::string::npos);
}

TEST_CASE("A trace keeps a thread's newest events", "[kernels][trace]") {
  TraceEvents::start();
  std::thread([] {
    for (uint64_t i = 0; i < TraceEvents::kTraceEvents + 100; ++i)
      const TraceSpan span("event", {{"i", i}});
  }).join();
  TraceEvents::stop();
  const auto spans = spans_of(TraceEvents::json());
  REQUIRE(spans.size() == TraceEvents::kTraceEvents);
  uint64_t oldest = ~uint64_t{0};
  for (const Span& span : spans) oldest = std::min(oldest, span.args.at("i").to_number<uint64_t>());
  CHECK(oldest == 100);
}

TEST_CASE("Traced operations give the same bytes and say their shapes", "[kernels][trace]") {
  std::mt19937 rng(3);
  const auto weights = tools::random_floats(rng, 32 * 64), x = tools::random_floats(rng, 5 * 64);
  const auto plain = kernels::make_cpu_ops(2);
  const auto traced = kernels::make_traced_ops(kernels::make_cpu_ops(2));
  const auto multiply = [&](kernels::Ops& ops) {
    std::vector<float> y(5 * 32);
    const auto matrix = ops.pack({kernels::DType::kF32, weights.data(), nullptr, 32, 64, 64, 1});
    ops.matmul({x.data(), 64}, *matrix, {y.data(), 32}, 5);
    return y;
  };
  TraceEvents::start();
  const auto y = multiply(*traced);
  TraceEvents::stop();
  CHECK(tools::same_bytes(y, multiply(*plain)));
  const auto spans = spans_of(TraceEvents::json());
  CHECK(find(spans, "matmul").args == json::object{{"rows", 5}, {"n", 32}, {"k", 64}});
  CHECK(find(spans, "pack").args == json::object{{"n", 32}, {"k", 64}});
}

TEST_CASE("A profile that cannot be written names its file", "[kernels][trace]") {
  CHECK_THROWS_WITH(TraceEvents::write("/nowhere/profile.json"),
                    Catch::Contains("/nowhere/profile.json"));
}
