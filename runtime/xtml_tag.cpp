#include "runtime/xtml_tag.hpp"

#include <algorithm>

namespace runtime {

namespace {

std::string unescaped(std::string_view value) {
  constexpr std::string_view kAmpersand = "&amp;", kQuote = "&quot;";
  std::string out;
  while (!value.empty()) {
    size_t used = 1;
    if (value.starts_with(kAmpersand)) {
      out += '&';
      used = kAmpersand.size();
    } else if (value.starts_with(kQuote)) {
      out += '"';
      used = kQuote.size();
    } else {
      out += value.front();
    }
    value.remove_prefix(used);
  }
  return out;
}

}  // namespace

const std::string* XtmlTag::find(std::string_view key) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& item) { return item.first == key; });
  return found == attributes.end() ? nullptr : &found->second;
}

XtmlTag parse_xtml_tag(std::string_view header) {
  XtmlTag tag;
  tag.name = header.substr(0, header.find(' '));
  header.remove_prefix(tag.name.size());
  for (;;) {
    header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
    const size_t assign = header.find("=\"");
    if (assign == std::string_view::npos) return tag;
    const size_t value = assign + 2;
    const size_t end = header.find('"', value);
    if (end == std::string_view::npos) return tag;
    tag.attributes.emplace_back(header.substr(0, assign),
                                unescaped(header.substr(value, end - value)));
    header.remove_prefix(end + 1);
  }
}

}  // namespace runtime
