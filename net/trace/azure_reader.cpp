// Azure's csv of 2023 and 2024: TIMESTAMP,ContextTokens,GeneratedTokens. Arrivals and lengths
// alone: no prefixes, no sessions.
#include <algorithm>
#include <cstdio>

#include "net/trace/csv_table.hpp"
#include "net/trace/trace_formats.hpp"

namespace net {
namespace {

// Days from 1970-01-01 (Gregorian calendar): a year that begins in March ends with its leap day.
int64_t days_since_1970(int year, int month, int day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  // 719468 days lie between 0000-03-01 and 1970-01-01.
  return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

struct TimeStamp {
  int64_t seconds = 0;  // since 1970, UTC
  double fraction = 0;
};

// "2023-11-16 18:17:03.9799600", with "+00:00" behind it or without.
std::optional<TimeStamp> parse_time(std::string_view text) {
  if (text.ends_with("+00:00")) text.remove_suffix(6);
  const std::string copy(text);
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d %2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6)
    return std::nullopt;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  TimeStamp time;
  time.seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
  const std::string_view rest = text.substr(static_cast<size_t>(used));
  if (rest.empty()) return time;
  if (rest[0] != '.' || rest.size() == 1) return std::nullopt;
  double unit = 0.1;
  for (const char digit : rest.substr(1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    time.fraction += unit * (digit - '0');
    unit /= 10;
  }
  return time;
}

struct Row {
  TimeStamp time;
  size_t line = 0;
  TraceRequest request;
};

}  // namespace

Trace read_azure(const TraceFile& file) {
  Trace trace;
  trace.format = TraceFormat::kAzure;
  CsvTable table(file);
  const size_t time = table.column("TIMESTAMP"), input = table.column("ContextTokens"),
               output = table.column("GeneratedTokens");
  std::vector<Row> rows;
  while (table.next()) {
    const auto parsed = parse_time(table.text(time));
    if (!parsed) table.expected(time, "a time like 2023-11-16 18:17:03.9799600");
    Row row{*parsed, table.line(), {}};
    row.request.input_tokens = static_cast<uint32_t>(table.integer(input, kTokenCounts));
    row.request.output_tokens = static_cast<uint32_t>(table.integer(output, kTokenCounts));
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.time.seconds != b.time.seconds) return a.time.seconds < b.time.seconds;
    return a.time.fraction < b.time.fraction;
  });
  for (Row& row : rows) {
    const TimeStamp& first = rows.front().time;
    row.request.session = static_cast<uint32_t>(trace.requests.size());
    // Whole seconds and their fractions apart: since 1970 a double keeps only 0.2 us.
    row.request.start_s = static_cast<double>(row.time.seconds - first.seconds) +
                          (row.time.fraction - first.fraction);
    trace.sessions.push_back({"line " + std::to_string(row.line), row.request.start_s, 1});
    trace.requests.push_back(std::move(row.request));
  }
  return trace;
}

}  // namespace net
