#include "net/trace/json_place.hpp"

#include <charconv>

namespace net {
namespace {

// Walks over valid JSON text without making values of it.
class Cursor {
 public:
  explicit Cursor(std::string_view json) : json_(json) { skip_space(); }

  size_t at() const { return at_; }
  bool enter_key(std::string_view key);  // false: no such member; the cursor has not moved
  bool enter_item(size_t index);

 private:
  char now() const { return at_ < json_.size() ? json_[at_] : '\0'; }
  void skip_space() {
    while (at_ < json_.size() && std::string_view(" \t\r\n,:").find(json_[at_]) != json_.npos)
      ++at_;
  }
  std::string_view take_string();  // with its quotes; the cursor is on the first
  void skip_value();

  std::string_view json_;
  size_t at_ = 0;
};

std::string_view Cursor::take_string() {
  const size_t begin = at_++;
  for (; now() != '"' && at_ < json_.size(); ++at_)
    if (now() == '\\') ++at_;
  return json_.substr(begin, ++at_ - begin);
}

void Cursor::skip_value() {
  size_t depth = 0;
  do {
    const char c = now();
    if (c == '"') {
      take_string();
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at_;
    } else if (c == '}' || c == ']') {
      --depth;
      ++at_;
    } else {
      at_ = json_.find_first_of(" \t\r\n,:]}", at_);
      if (at_ == json_.npos) at_ = json_.size();
    }
    skip_space();
  } while (depth > 0 && at_ < json_.size());
}

bool Cursor::enter_key(std::string_view key) {
  if (now() != '{') return false;
  const size_t object = at_++;
  for (skip_space(); now() == '"'; skip_space()) {
    const std::string_view name = take_string();
    skip_space();
    if (name.size() == key.size() + 2 && name.substr(1, key.size()) == key) return true;
    skip_value();
  }
  at_ = object;
  return false;
}

bool Cursor::enter_item(size_t index) {
  if (now() != '[') return false;
  const size_t array = at_++;
  for (skip_space(); now() != ']' && now() != '\0'; skip_space()) {
    if (index-- == 0) return true;
    skip_value();
  }
  at_ = array;
  return false;
}

}  // namespace

size_t place_in_json(std::string_view json, std::string_view path) {
  Cursor cursor(json);
  while (!path.empty()) {
    bool found = false;
    if (path[0] == '[') {
      size_t index = 0;
      const size_t end = path.find(']');
      std::from_chars(path.data() + 1, path.data() + path.size(), index);
      found = end != path.npos && cursor.enter_item(index);
      path.remove_prefix(end == path.npos ? path.size() : end + 1);
    } else {
      const size_t end = path.find_first_of(".[");
      found = cursor.enter_key(path.substr(0, end));
      path.remove_prefix(end == path.npos ? path.size() : end);
    }
    if (!found) break;
    if (!path.empty() && path[0] == '.') path.remove_prefix(1);
  }
  return cursor.at();
}

}  // namespace net
