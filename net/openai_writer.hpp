// Writes JSON text straight into a string: a chunk of a stream is built this way, without a tree of
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace net {

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD: a payload is
// valid JSON in every case.
void append_quoted(std::string& out, std::string_view text);
void append_integer(std::string& out, int64_t value);
// The shortest text that reads back as the same float. JSON has no infinity: those become +-9999.
void append_float(std::string& out, float value);

}  // namespace net
