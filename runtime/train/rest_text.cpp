#include "runtime/train/rest_text.hpp"

#include <algorithm>
#include <array>

namespace runtime {

namespace {

constexpr std::array<std::string_view, 19> kBuilderDirectives{
    "index",       "sectionauthor", "moduleauthor", "highlight", "currentmodule",
    "module",      "toctree",       "include",      "image",     "literalinclude",
    "figure",      "program",       "contents",     "testsetup", "tabularcolumns",
    "testcleanup", "audit-event",   "miscnews",     "codeauthor"};

size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Of an explicit block, whose first line begins with "..": does only the builder read it?
bool is_for_builder(std::string_view line) {
  line.remove_prefix(indentation(line));
  if (line != ".." && !line.starts_with(".. ")) return false;
  line.remove_prefix(std::min<size_t>(3, line.size()));
  if (line.starts_with('[') || line.starts_with('|')) return false;  // a footnote; a substitution
  const size_t colons = line.find("::");
  const size_t blank = line.find(' ');
  const bool is_directive = colons != line.npos && (blank == line.npos || colons < blank);
  if (!is_directive) return true;  // a comment, or the target of a link
  const std::string_view name = line.substr(0, colons);
  return std::find(kBuilderDirectives.begin(), kBuilderDirectives.end(), name) !=
         kBuilderDirectives.end();
}

std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

}  // namespace

std::string clean_rest_text(std::string_view source) {
  std::string out;
  bool owes_blank_line = false, skipping = false;
  size_t skipped_indentation = 0;
  while (!source.empty()) {
    const std::string_view line = take_line(source);
    if (line.empty()) {
      owes_blank_line = !out.empty();
      continue;
    }
    if (skipping && indentation(line) > skipped_indentation) continue;
    skipping = is_for_builder(line);
    if (skipping) {
      skipped_indentation = indentation(line);
      continue;
    }
    if (owes_blank_line) out += '\n';
    owes_blank_line = false;
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace runtime
