// A file of recorded traffic in memory, and how its mistakes are reported: by path and line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/json_fields.hpp"

namespace net {

struct TraceFile {
  std::string path, bytes;
};

// Plain or gzip, whatever its name. Throws std::runtime_error naming the path.
TraceFile read_trace_file(const std::string& path);

// Throws std::runtime_error "PATH:LINE: problem". Lines count from 1.
[[noreturn]] void bad_row(const TraceFile& file, size_t line, const std::string& problem);
size_t line_of_byte(const TraceFile& file, size_t offset);

// The lines of a file, without their ends (LF or CR LF). Blank ones are passed over.
class TraceLines {
 public:
  explicit TraceLines(const TraceFile& file) : rest_(file.bytes) {}
  bool next();  // false: there is no further line
  std::string_view text() const { return text_; }
  size_t number() const { return number_; }

 private:
  std::string_view rest_, text_;
  size_t number_ = 0;
};

// read(Fields, line number) for each line, a JSON object. What it complains of is reported.
template <class Read>
void for_each_json_row(const TraceFile& file, Read read) {
  for (TraceLines lines(file); lines.next();) {
    JsonBody body(lines.text(), "the line");
    if (!body.error()) read(body.fields(), lines.number());
    if (body.error()) bad_row(file, lines.number(), body.error()->message);
  }
}

}  // namespace net
