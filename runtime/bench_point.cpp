#include "runtime/bench_point.hpp"

#include <algorithm>
#include <charconv>

namespace runtime {
namespace {

constexpr uint32_t kMaxTokens = 1u << 20;  // of a prompt or a context
constexpr uint32_t kMaxSequences = 512;

kernels::Error wrong(std::string_view name) {
  return kernels::invalid("no point is called \"" + std::string(name) +
                          "\"; points are prefill_N (N from 1 to 1048576), decode_B (B from 1 to "
                          "512) and decode_B_depth_D (D from 1 to 1048576)");
}

// Takes "<prefix><number>" off the front of `text`.
bool take(std::string_view& text, std::string_view prefix, uint32_t max, uint32_t& number) {
  if (!text.starts_with(prefix)) return false;
  const char* const begin = text.data() + prefix.size();
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || number == 0 || number > max) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

}  // namespace

std::string to_string(const BenchPoint& point) {
  const bool prefill = point.kind == BenchPoint::Kind::kPrefill;
  std::string name = (prefill ? "prefill_" : "decode_") + std::to_string(point.count);
  if (point.depth != 0) name += "_depth_" + std::to_string(point.depth);
  return name;
}

kernels::Result<BenchPoint> parse_bench_point(std::string_view name) {
  BenchPoint point;
  std::string_view rest = name;
  if (take(rest, "prefill_", kMaxTokens, point.count)) {
    point.kind = BenchPoint::Kind::kPrefill;
  } else if (take(rest, "decode_", kMaxSequences, point.count)) {
    point.kind = BenchPoint::Kind::kDecode;
    if (!rest.empty() && !take(rest, "_depth_", kMaxTokens, point.depth)) return wrong(name);
  } else {
    return wrong(name);
  }
  if (!rest.empty()) return wrong(name);
  return point;
}

kernels::Result<std::vector<BenchPoint>> parse_bench_points(std::string_view names) {
  std::vector<BenchPoint> points;
  while (true) {
    const size_t comma = names.find(',');
    auto point = parse_bench_point(names.substr(0, comma));
    if (!point) return std::move(point).error();
    const BenchPoint shallow = {point->kind, point->count, 0};
    if (point->depth != 0 && std::find(points.begin(), points.end(), shallow) == points.end())
      points.push_back(shallow);
    points.push_back(*point);
    if (comma == std::string_view::npos) return points;
    names.remove_prefix(comma + 1);
  }
}

std::vector<BenchPoint> default_bench_points(bool deep) {
  std::vector<BenchPoint> points;
  for (uint32_t tokens = 128; tokens <= 8192; tokens *= 2)
    points.push_back({BenchPoint::Kind::kPrefill, tokens, 0});
  for (uint32_t batch = 1; batch <= 32; batch *= 2)
    points.push_back({BenchPoint::Kind::kDecode, batch, 0});
  if (deep) {
    for (const uint32_t depth : {8192u, 32768u})
      points.push_back({BenchPoint::Kind::kDecode, 1, depth});
  }
  return points;
}

}  // namespace runtime
