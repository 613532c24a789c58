#include "net/replay/event_reader.hpp"

#include <utility>

namespace net {

void EventReader::push(std::string_view bytes) {
  bytes_.erase(0, std::exchange(read_, 0));
  for (const char c : bytes) {  // a line ends with CR LF, LF or CR
    const bool second = c == '\n' && after_cr_;
    after_cr_ = c == '\r';
    if (!second) bytes_.push_back(after_cr_ ? '\n' : c);
  }
}

std::optional<std::string> EventReader::next() {
  constexpr std::string_view kData = "data:";
  for (size_t end; (end = bytes_.find('\n', read_)) != bytes_.npos;) {
    std::string_view line = std::string_view(bytes_).substr(read_, end - read_);
    read_ = end + 1;
    if (line.empty()) {
      if (!std::exchange(has_data_, false)) continue;
      return std::exchange(data_, {});
    }
    if (line.substr(0, kData.size()) != kData) continue;
    line.remove_prefix(kData.size());
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (has_data_) data_.push_back('\n');
    data_.append(line);
    has_data_ = true;
  }
  return std::nullopt;
}

}  // namespace net
