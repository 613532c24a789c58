#include "runtime/train/text_flow.hpp"

#include <algorithm>
#include <utility>

namespace runtime {

namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";
constexpr std::string_view kNoBreakSpace = "\xc2\xa0";

std::string with_plain_blanks(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t found = std::min(text.find(kNoBreakSpace), text.size());
    out += text.substr(0, found);
    text.remove_prefix(found);
    if (text.empty()) break;
    out += ' ';
    text.remove_prefix(kNoBreakSpace.size());
  }
  std::erase(out, '\r');
  return out;
}

}  // namespace

void TextFlow::words(std::string_view text) {
  const std::string plain = with_plain_blanks(text);
  std::string_view rest = plain;
  while (!rest.empty()) {
    const size_t blanks = std::min(rest.find_first_not_of(kBlanks), rest.size());
    if (blanks > 0) space_ = true;
    rest.remove_prefix(blanks);
    if (rest.empty()) return;
    const size_t length = std::min(rest.find_first_of(kBlanks), rest.size());
    begin_word();
    text_ += rest.substr(0, length);
    rest.remove_prefix(length);
  }
}

void TextFlow::begin_word() {
  if (!text_.empty()) {
    if (line_ends_ > 0) {
      text_.append(static_cast<size_t>(line_ends_), '\n');
    } else if (space_ && prefix_.empty() && text_.back() != ' ' && text_.back() != '\n') {
      text_ += ' ';
    }
  }
  text_ += std::exchange(prefix_, {});
  line_ends_ = 0;
  space_ = false;
}

// Blanks within a line and empty lines inside stay; those around the whole and at line ends go.
void TextFlow::preformatted(std::string_view text) {
  const std::string plain = with_plain_blanks(text);
  std::string_view rest = plain;
  while (!rest.empty() && rest.substr(0, rest.find('\n')).find_first_not_of(kBlanks) == rest.npos) {
    const size_t line = rest.find('\n');
    if (line == rest.npos) return;
    rest.remove_prefix(line + 1);
  }
  paragraph();
  bool is_first = true;
  int empty_lines = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.empty()) {
      ++empty_lines;
      continue;
    }
    if (is_first) {
      begin_word();
    } else {
      text_.append(empty_lines > 0 ? 2 : 1, '\n');
    }
    text_ += line;
    is_first = false;
    empty_lines = 0;
  }
  paragraph();
}

void TextFlow::line_break() {
  if (prefix_.empty()) line_ends_ = std::max(line_ends_, 1);
}

void TextFlow::paragraph() {
  if (prefix_.empty()) line_ends_ = 2;
}

void TextFlow::prefix(std::string_view text) { prefix_ = text; }

void TextFlow::cell() {
  line_ends_ = 0;
  prefix_ = " | ";
}

std::string TextFlow::take() {
  std::string text = std::exchange(text_, {});
  *this = {};
  if (!text.empty()) text += '\n';
  return text;
}

}  // namespace runtime
