#include "net/replay/report_page.hpp"

#include <cstdlib>

#include "kernels/base/verify.hpp"
#include "runtime/plot/svg_text.hpp"

namespace net {
namespace {

using runtime::xml_escaped;

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == 0;
}

constexpr const char* kStyle = R"(body { font: 15px/1.45 sans-serif; color: #222; margin: 2em auto;
  max-width: 62em; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: 0.2em 0.8em 0.2em 0; border-bottom: 1px solid #ddd; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; max-width: 100%; height: auto; margin: 1.2em 0; }
pre { background: #f5f5f5; padding: 0.8em; overflow-x: auto; font-size: 13px; }
)";

}  // namespace

void ReportPage::heading(std::string_view text) {
  body_ += "<h2>" + xml_escaped(text) + "</h2>\n";
}

void ReportPage::paragraph(std::string_view text) {
  body_ += "<p>" + xml_escaped(text) + "</p>\n";
}

void ReportPage::preformatted(std::string_view text) {
  body_ += "<pre>" + xml_escaped(text) + "</pre>\n";
}

void ReportPage::table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows) {
  body_ += "<table>\n<tr>";
  for (const std::string& cell : head) body_ += "<th>" + xml_escaped(cell) + "</th>";
  body_ += "</tr>\n";
  for (const std::vector<std::string>& row : rows) {
    VERIFY(row.size() == head.size());
    body_ += "<tr>";
    for (const std::string& cell : row) {
      body_ += (is_number(cell) ? "<td class=\"number\">" : "<td>") + xml_escaped(cell) + "</td>";
    }
    body_ += "</tr>\n";
  }
  body_ += "</table>\n";
}

std::string ReportPage::html() const {
  const std::string title = xml_escaped(title_);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>" + title +
         "</title>\n<style>\n" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n" +
         body_ + "</body>\n</html>\n";
}

}  // namespace net
