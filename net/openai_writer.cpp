#include "net/openai_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "runtime/canonical_json.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

bool is_plain(char c) {
  return c != '"' && c != '\\' && static_cast<uint8_t>(c) >= 0x20 && static_cast<uint8_t>(c) < 0x80;
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_plain(text[end])) ++end;
    out.append(text, i, end - i);
    i = end;
    if (i == text.size()) break;
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      runtime::append_json_escaped(text.substr(i++, 1), out);
      continue;
    }
    const runtime::Utf8Unit unit = runtime::next_utf8_unit(text.substr(i));
    const bool valid = unit.kind == runtime::Utf8Unit::Kind::kValid;
    out += valid ? text.substr(i, unit.bytes) : runtime::kReplacementCharacter;
    i += unit.bytes;
  }
  out += '"';
}

void append_integer(std::string& out, int64_t value) {
  std::array<char, 24> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

void append_float(std::string& out, float value) {
  constexpr float kBound = 9999.0f;  // what OpenAI's API answers for a probability of zero
  if (std::isnan(value)) value = -kBound;
  if (std::isinf(value)) value = value < 0 ? -kBound : kBound;
  std::array<char, 32> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

}  // namespace net
