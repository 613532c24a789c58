// A report as one HTML file that needs nothing beside it: headings, tables, pictures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace net {

class ReportPage {
 public:
  explicit ReportPage(std::string title) : title_(std::move(title)) {}

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  void preformatted(std::string_view text);
  // Rows as long as `head`. Cells that are numbers stand to the right.
  void table(const std::vector<std::string>& head,
             const std::vector<std::vector<std::string>>& rows);
  void picture(std::string_view svg) { body_ += svg; }
  std::string html() const;

 private:
  std::string title_, body_;
};

}  // namespace net
