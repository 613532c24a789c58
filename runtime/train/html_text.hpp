// The readable text of an HTML page: no scripts, drawings, forms or navigation.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

// Paragraphs are single lines set apart by a blank line, list items begin with "- ", the cells of a
// table row are parted by " | ", preformatted text stays as it is. The page's title comes first.
// Never fails: what is no HTML gives the text that a browser would show.
std::string html_to_text(std::string_view html);

}  // namespace runtime
