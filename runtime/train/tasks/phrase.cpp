#include "runtime/train/tasks/phrase.hpp"

#include <vector>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

// The alternatives of the choice whose "[" was just passed; `pattern` then stands behind its "]".
std::vector<std::string_view> take_alternatives(std::string_view& pattern) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '[') ++depth;
    if (depth == 0 && (c == '|' || c == ']')) {
      out.push_back(pattern.substr(begin, i - begin));
      begin = i + 1;
      if (c == ']') {
        pattern.remove_prefix(begin);
        return out;
      }
    }
    if (c == ']') --depth;
  }
  VERIFY(!"a choice is not closed");
  return out;
}

// "a {thing}" with an orange in the slot wants an "an".
void append_slot(std::string_view value, std::string& out) {
  const bool after_article =
      out == "a " || out == "A " || out.ends_with(" a ") || out.ends_with(" A ");
  const bool is_vowel =
      !value.empty() && std::string_view("aeioAEIO").find(value.front()) != std::string_view::npos;
  if (after_article && (is_vowel || value.starts_with("umbrella"))) out.insert(out.size() - 1, "n");
  out += value;
}

void expand(TaskRandom& random, std::string_view pattern, const Slots& slots, std::string& out) {
  while (!pattern.empty()) {
    const char c = pattern.front();
    pattern.remove_prefix(1);
    if (c == '[') {
      const auto alternatives = take_alternatives(pattern);
      expand(random, random.pick(alternatives), slots, out);
    } else if (c == '{') {
      const size_t end = pattern.find('}');
      VERIFY(end != pattern.npos);
      const auto found = slots.find(pattern.substr(0, end));
      VERIFY(found != slots.end());
      append_slot(found->second, out);
      pattern.remove_prefix(end + 1);
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string phrase(TaskRandom& random, std::string_view pattern, const Slots& slots) {
  std::string out;
  expand(random, pattern, slots, out);
  return out;
}

}  // namespace runtime
