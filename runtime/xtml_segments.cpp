#include "runtime/xtml_segments.hpp"

namespace runtime {

namespace {

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void XtmlSegments::control(std::string_view marker) {
  segments_.push_back({std::string(marker), true});
}

void XtmlSegments::text(std::string_view text) {
  if (!text.empty()) segments_.push_back({std::string(text), false});
}

void XtmlSegments::open(std::string_view tag, std::initializer_list<XtmlAttribute> attributes) {
  open(tag, std::vector<XtmlAttribute>(attributes));
}

void XtmlSegments::open(std::string_view tag, const std::vector<XtmlAttribute>& attributes) {
  control(xtml::kOpen);
  text(tag);
  for (const XtmlAttribute& attribute : attributes) {
    std::string key = " ";
    key += attribute.key;
    text(key);
    text("=\"");
    text(escaped(attribute.value));
    text("\"");
  }
  control(xtml::kSeparator);
}

void XtmlSegments::close(std::string_view tag) {
  control(xtml::kClose);
  text(tag);
  control(xtml::kSeparator);
}

void XtmlSegments::end_message() {
  close("message");
  control(xtml::kEndOfMessage);
}

}  // namespace runtime
