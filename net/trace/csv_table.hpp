// A csv file with a header, read row by row and field by field. No field of the formats we read
// is quoted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/json_fields.hpp"
#include "net/trace/trace_file.hpp"

namespace net {

class CsvTable {
 public:
  explicit CsvTable(const TraceFile& file);

  // The place of a column; a header without it is reported.
  size_t column(std::string_view name) const;
  size_t line() const { return lines_.number(); }
  bool next();  // the next row; one with too few or too many fields is reported

  // Of the row at hand. What is not as it should be is reported with line and column.
  std::string_view text(size_t column) const { return fields_[column]; }
  int64_t integer(size_t column, IntegerRange range) const;
  double number(size_t column, NumberRange range) const;
  std::optional<double> number_or_nothing(size_t column, NumberRange range) const;
  [[noreturn]] void expected(size_t column, const std::string& what) const;
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const TraceFile& file_;
  TraceLines lines_;
  std::vector<std::string_view> names_, fields_;
};

// The fields of one line.
void split_csv(std::string_view line, std::vector<std::string_view>& fields);

}  // namespace net
