// What stands between <|open|> or <|close|> and <|sep|>: a name, and attributes as in `call
// tool="get_weather" index="1"`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace runtime {

struct XtmlTag {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // values unescaped

  const std::string* find(std::string_view key) const;  // nullptr when absent
};

// Takes what it can: attributes end at the first one that is not ` key="value"`.
XtmlTag parse_xtml_tag(std::string_view header);

}  // namespace runtime
