#include "runtime/bench_report.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

namespace runtime {
namespace {

constexpr double kGiga = 1e9;

// What the fraction is of.
const char* limit_name(const BenchFigure& figure) {
  if (figure.point.depth != 0) return "attention over depth";
  return figure.limit == BenchFigure::Limit::kBytes ? "read bandwidth" : "multiply-add peak";
}

}  // namespace

std::string bench_table_head() {
  return "point                    tokens/s  fraction  of                    read GB/s  peak GF/s";
}

std::string bench_table_row(const BenchFigure& figure) {
  char line[160];
  std::snprintf(line, sizeof line, "%-22s %10.1f %9.2f  %-21s %9.1f %10.1f",
                to_string(figure.point).c_str(), figure.tokens_per_s, figure.fraction,
                limit_name(figure), figure.rates.read / kGiga, figure.rates.flops / kGiga);
  return line;
}

std::string bench_json(const BenchReport& report) {
  boost::json::object out;
  out["model"] = report.model;
  out["target"] = report.target;
  out["threads"] = report.threads;
  kernels::CeilingRates rates;
  for (const BenchFigure& figure : report.figures) {
    const std::string name = to_string(figure.point);
    out[name] = figure.tokens_per_s;
    out[name + "_fraction"] = figure.fraction;
    if (figure.point.kind == BenchPoint::Kind::kDecode) out[name + "_experts"] = figure.experts;
    rates.keep_best(figure.rates);
  }
  out["read_bytes_per_s"] = rates.read;
  out["flops_per_s"] = rates.flops;
  return boost::json::serialize(out);
}

}  // namespace runtime
