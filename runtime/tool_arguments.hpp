// Writes the arguments of one tool call as JSON text while the model writes them as XTML elements.
// Strings stream, escaped; every other value is held back until it is whole, because only then is
// it known to be JSON. Invariant: what was appended, followed by finish(), is one JSON object.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

class ToolArguments {
 public:
  // An element ends where the next one begins. Text is valid UTF-8; outside of an element it must
  // not be given.
  void begin_argument(std::string_view key, std::string_view type, std::string& out);
  void begin_json(
      std::string& out);  // the object as a whole; its members join those already written
  void append(std::string_view text, std::string& out);
  void end_element(std::string& out);
  void finish(std::string& out);  // "{}" when nothing came

 private:
  enum class Element { kNone, kString, kValue, kJson };

  void begin_member(std::string_view key, std::string& out);
  void separate(std::string& out);
  void end_json(std::string& out);

  Element element_ = Element::kNone;
  std::string key_, held_;  // of a value or a json element
  bool any_members_ = false;
};

}  // namespace runtime
