// Well-formed UTF-8, one unit at a time. A malformed stretch is cut into maximal subparts
// (Unicode 3.9, the WHATWG decoder's practice), so every decoder that uses this file agrees on how
// many U+FFFD a broken text holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace runtime {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Unit {
  enum class Kind {
    kValid,       // one encoded character
    kInvalid,     // a maximal subpart that no further byte can complete
    kIncomplete,  // the text ends inside a sequence that may still become valid
  };
  Kind kind = Kind::kValid;
  size_t bytes = 0;         // 1 .. 4; of an incomplete unit: what is there, 1 .. 3
  uint32_t code_point = 0;  // kValid only
};

// The unit at the start of `text`, which must not be empty.
Utf8Unit next_utf8_unit(std::string_view text);

// Bytes in, valid UTF-8 out. Holds back at most 3 bytes: the start of a sequence whose end has not
// come yet.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);
  void flush(std::string& out);  // what is held back becomes one U+FFFD

 private:
  std::string pending_;
};

std::string to_valid_utf8(std::string_view bytes);

// Where the first byte that is not UTF-8 lies, or npos.
size_t find_invalid_utf8(std::string_view text);
// The first `count` code points of valid UTF-8.
std::string_view code_point_prefix(std::string_view text, size_t count);
// Bytes that begin a code point; for valid UTF-8 the number of code points.
uint32_t count_code_points(std::string_view text);

}  // namespace runtime
