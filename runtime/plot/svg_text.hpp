// Spelling inside a picture: numbers the same everywhere, text so that no character of it is read
// as markup.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

std::string svg_number(double value);  // two digits after the point at most; "0" where not finite
std::string xml_escaped(std::string_view text);  // for text and for quoted attributes

// name="..." for a tag, with a space before it.
std::string svg_attribute(std::string_view name, std::string_view value);
std::string svg_attribute(std::string_view name, double value);

}  // namespace runtime
