#include "runtime/plot/svg_text.hpp"

#include <cmath>
#include <cstdio>

namespace runtime {

std::string svg_number(double value) {
  const double hundredths = std::round(value * 100);
  if (!std::isfinite(hundredths) || hundredths == 0) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", hundredths / 100);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters are no part of XML.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string svg_attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

std::string svg_attribute(std::string_view name, double value) {
  return svg_attribute(name, svg_number(value));
}

}  // namespace runtime
