#include "net/trace/csv_table.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/canonical_json.hpp"

namespace net {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace

void split_csv(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == line.npos) return;
    line.remove_prefix(comma + 1);
  }
}

CsvTable::CsvTable(const TraceFile& file) : file_(file), lines_(file) {
  if (!lines_.next()) bad_row(file, 1, "the file is empty; expected a header of column names");
  split_csv(lines_.text(), names_);
}

size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) fail("the header has no column " + std::string(name));
  return static_cast<size_t>(found - names_.begin());
}

bool CsvTable::next() {
  if (!lines_.next()) return false;
  split_csv(lines_.text(), fields_);
  if (fields_.size() != names_.size())
    fail("has " + std::to_string(fields_.size()) + " fields; the header names " +
         std::to_string(names_.size()));
  return true;
}

int64_t CsvTable::integer(size_t column, IntegerRange range) const {
  const auto value = parse_number<int64_t>(fields_[column]);
  if (!value || *value < range.low || *value > range.high)
    expected(column, "an integer between " + std::to_string(range.low) + " and " +
                         std::to_string(range.high));
  return *value;
}

double CsvTable::number(size_t column, NumberRange range) const {
  const auto value = parse_number<double>(fields_[column]);
  if (!value || !(*value >= range.low && *value <= range.high))
    expected(column, "a number between " + runtime::json_number(range.low) + " and " +
                         runtime::json_number(range.high));
  return *value;
}

std::optional<double> CsvTable::number_or_nothing(size_t column, NumberRange range) const {
  if (fields_[column].empty()) return std::nullopt;
  return number(column, range);
}

void CsvTable::expected(size_t column, const std::string& what) const {
  const std::string_view shown = fields_[column].substr(0, 40);
  fail(std::string(names_[column]) + " must be " + what + ", got " +
       (shown.empty() ? "nothing" : runtime::json_quoted(shown)));
}

void CsvTable::fail(const std::string& problem) const { bad_row(file_, lines_.number(), problem); }

}  // namespace net
