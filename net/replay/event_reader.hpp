// Reads server-sent events out of bytes that come in pieces of any size: of each event its data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace net {

class EventReader {
 public:
  void push(std::string_view bytes);
  // The data of the next event that is complete; comments and events without data are passed over.
  std::optional<std::string> next();

 private:
  std::string bytes_;  // not read yet; every end of a line is one LF
  size_t read_ = 0;
  bool after_cr_ = false;  // an LF now belongs to it
  std::string data_;       // of the event under way
  bool has_data_ = false;
};

}  // namespace net
