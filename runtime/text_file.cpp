#include "runtime/text_file.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace runtime {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw std::runtime_error(path + ": cannot be read to its end");
  return text;
}

}  // namespace runtime
