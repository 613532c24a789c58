#include "runtime/utf8.hpp"

namespace runtime {

namespace {

struct Lead {
  size_t length = 0;  // of the whole sequence; 0: never starts one
  uint8_t second_min = 0x80,
          second_max = 0xBF;  // excludes overlong forms, surrogates and values past U+10FFFF
  uint32_t bits = 0;          // the lead's part of the code point
};

Lead classify_lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0, byte};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2, 0x80, 0xBF, byte & 0x1Fu};
  if (byte < 0xF0) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = byte == 0xED ? 0x9F : 0xBF;
    return {3, low, high, byte & 0x0Fu};
  }
  if (byte > 0xF4) return {};
  const uint8_t low = byte == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = byte == 0xF4 ? 0x8F : 0xBF;
  return {4, low, high, byte & 0x07u};
}

}  // namespace

Utf8Unit next_utf8_unit(std::string_view text) {
  const Lead lead = classify_lead(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {Utf8Unit::Kind::kInvalid, 1, 0};
  uint32_t code_point = lead.bits;
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Unit::Kind::kIncomplete, i, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte < low || byte > high) return {Utf8Unit::Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {Utf8Unit::Kind::kValid, lead.length, code_point};
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_ + std::string(bytes);
    bytes = joined;
    pending_.clear();
  }
  while (!bytes.empty()) {
    const Utf8Unit unit = next_utf8_unit(bytes);
    if (unit.kind == Utf8Unit::Kind::kIncomplete) {
      pending_ = bytes;
      return;
    }
    out +=
        unit.kind == Utf8Unit::Kind::kValid ? bytes.substr(0, unit.bytes) : kReplacementCharacter;
    bytes.remove_prefix(unit.bytes);
  }
}

void Utf8Stream::flush(std::string& out) {
  if (!pending_.empty()) out += kReplacementCharacter;
  pending_.clear();
}

std::string to_valid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  stream.push(bytes, out);
  stream.flush(out);
  return out;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const Utf8Unit unit = next_utf8_unit(text.substr(i));
    if (unit.kind != Utf8Unit::Kind::kValid) return i;
    i += unit.bytes;
  }
  return std::string_view::npos;
}

std::string_view code_point_prefix(std::string_view text, size_t count) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const bool starts = (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80;
    if (starts && count-- == 0) break;
  }
  return text.substr(0, i);
}

uint32_t count_code_points(std::string_view text) {
  uint32_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

}  // namespace runtime
