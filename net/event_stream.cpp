#include "net/event_stream.hpp"

#include <array>
#include <charconv>

namespace net {
namespace {

constexpr std::string_view kBefore = "data: ";
constexpr std::string_view kAfter = "\n\n";
constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

void append_events(const std::vector<std::string>& payloads, bool chunked, std::string& wire) {
  if (payloads.empty()) return;  // an empty chunk would end the body
  size_t bytes = 0;
  for (const auto& payload : payloads) bytes += kBefore.size() + payload.size() + kAfter.size();
  if (chunked) {
    std::array<char, 16> digits;  // 64 bits in hexadecimal
    const auto end = std::to_chars(digits.begin(), digits.end(), bytes, 16).ptr;
    wire.append(digits.begin(), end).append(kLineEnd);
  }
  for (const auto& payload : payloads) wire.append(kBefore).append(payload).append(kAfter);
  if (chunked) wire.append(kLineEnd);
}

void append_stream_end(bool chunked, std::string& wire) {
  if (chunked) wire.append("0\r\n\r\n");
}

}  // namespace net
