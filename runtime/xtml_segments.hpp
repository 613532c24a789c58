// Builds the segments of an XTML prompt. Control markers stand alone; the name of a tag and each
// part of an attribute are text segments of their own, so no byte-pair merge crosses them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/xtml_template.hpp"

namespace runtime {

namespace xtml {
inline constexpr std::string_view kOpen = "<|open|>";
inline constexpr std::string_view kClose = "<|close|>";
inline constexpr std::string_view kSeparator = "<|sep|>";
inline constexpr std::string_view kEndOfMessage = "<|end_of_msg|>";
}  // namespace xtml

struct XtmlAttribute {
  std::string_view key, value;  // an empty value still counts
};

class XtmlSegments {
 public:
  void open(std::string_view tag, std::initializer_list<XtmlAttribute> attributes = {});
  void open(std::string_view tag, const std::vector<XtmlAttribute>& attributes);
  void close(std::string_view tag);
  void text(std::string_view text);  // never escaped; nothing when empty
  void end_message();                // closes the message element
  std::vector<Segment> take() { return std::move(segments_); }

 private:
  void control(std::string_view marker);
  std::vector<Segment> segments_;
};

}  // namespace runtime
