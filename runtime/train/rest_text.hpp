// reStructuredText sources without what only the documentation's builder reads: link targets,
// index entries, authors, tables of contents, includes, comments. Prose, code and inline markup
// stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

std::string clean_rest_text(std::string_view source);

}  // namespace runtime
