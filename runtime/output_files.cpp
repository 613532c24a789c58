#include "runtime/output_files.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace runtime {

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw std::runtime_error(path + ": cannot be created (" + error.message() + ")");
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace runtime
