// XTML written as one readable string, to and from the ids of a tokenizer whose base tokens are
// single bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer.hpp"
#include "runtime/xtml_template.hpp"

namespace support {

// "<|open|>" and the other three markers become control ids, everything else bytes.
inline std::vector<runtime::TokenId> xtml_ids(const runtime::Tokenizer& tokenizer,
                                              std::string_view text) {
  std::vector<runtime::TokenId> ids;
  while (!text.empty()) {
    bool is_marker = false;
    for (const std::string_view marker :
         {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "[BOS]"}) {
      if (!text.starts_with(marker)) continue;
      ids.push_back(*tokenizer.special(marker));
      text.remove_prefix(marker.size());
      is_marker = true;
      break;
    }
    if (is_marker) continue;
    tokenizer.encode_text(text.substr(0, 1), ids);
    text.remove_prefix(1);
  }
  return ids;
}

inline std::string joined(const std::vector<runtime::Segment>& segments) {
  std::string out;
  for (const runtime::Segment& segment : segments) out += segment.text;
  return out;
}

}  // namespace support
