#include "runtime/sim/pd_points.hpp"

#include <charconv>
#include <sstream>
#include <stdexcept>

#include "runtime/text_file.hpp"

namespace runtime {
namespace {

constexpr size_t kColumns = 8;

[[noreturn]] void fail(const std::string& path, size_t line, const std::string& problem) {
  throw std::runtime_error(path + ":" + std::to_string(line) + ": " + problem);
}

template <class Number>
Number number(const std::string& text, const std::string& path, size_t line) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !(value > Number{0})) {
    fail(path, line, "\"" + text + "\" is no positive number");
  }
  return value;
}

ParallelLayout layout(const std::string& text, const std::string& path, size_t line) {
  try {
    return parse_layout(text);
  } catch (const std::invalid_argument& error) {
    fail(path, line, error.what());
  }
}

}  // namespace

std::vector<PdPoint> read_pd_points(const std::string& path) {
  std::istringstream lines(read_text(path));
  std::vector<PdPoint> points;
  size_t line = 0;
  bool has_heads = false;
  for (std::string text; std::getline(lines, text);) {
    ++line;
    if (text.empty() || text[0] == '#') continue;
    if (!has_heads) {
      has_heads = true;
      continue;
    }
    std::vector<std::string> cells;
    std::istringstream row(text);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    if (cells.size() != kColumns) {
      fail(path, line,
           std::to_string(cells.size()) + " columns; expected " + std::to_string(kColumns));
    }
    PdPoint point;
    point.sweep = cells[0];
    point.prefill = layout(cells[1], path, line);
    point.prefill_servers = number<uint32_t>(cells[2], path, line);
    point.decode = layout(cells[3], path, line);
    point.decode_servers = number<uint32_t>(cells[4], path, line);
    point.devices = number<uint32_t>(cells[5], path, line);
    point.user_tps = number<double>(cells[6], path, line);
    point.device_tps = number<double>(cells[7], path, line);
    points.push_back(point);
  }
  return points;
}

}  // namespace runtime
