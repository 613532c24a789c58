#include "runtime/toml_document.hpp"

#include <sstream>
#include <stdexcept>

namespace runtime {

toml::table parse_toml(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    std::ostringstream message;
    message << path << ":" << error.source().begin.line << ": " << error.description();
    throw std::runtime_error(message.str());
  }
}

}  // namespace runtime
