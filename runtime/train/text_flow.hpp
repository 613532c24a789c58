// Text put together from a document's pieces: white space between words collapses, paragraphs are
// set apart by one blank line, and preformatted lines stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

class TextFlow {
 public:
  void words(std::string_view text);
  void preformatted(std::string_view text);
  void line_break();
  void paragraph();
  // Stands before the next words, on their line: "- ", " | ". Until they come, breaks are ignored.
  void prefix(std::string_view text);
  void cell();         // the next words follow those before on the same line, after a bar
  std::string take();  // ends with one line end; empty when nothing came

 private:
  void begin_word();

  std::string text_, prefix_;
  int line_ends_ = 0;  // owed before the next word: 1, or 2 for a paragraph
  bool space_ = false;
};

}  // namespace runtime
