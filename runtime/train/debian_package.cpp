#include "runtime/train/debian_package.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace runtime {

namespace {

std::ifstream open_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be read; the corpus is built on Debian");
  return in;
}

// The version in the stanza of an installed package.
std::optional<std::string> installed_version(const std::string& status_path,
                                             const std::string& name) {
  std::ifstream in = open_text(status_path);
  bool is_package = false, is_installed = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) is_package = is_installed = false;
    if (line == "Package: " + name) is_package = true;
    if (line == "Status: install ok installed") is_installed = true;
    const std::string field = "Version: ";
    if (is_package && is_installed && line.starts_with(field)) return line.substr(field.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<DebianPackage> find_debian_package(const std::string& root, const std::string& name) {
  const std::string database = root + "/var/lib/dpkg/";
  const auto version = installed_version(database + "status", name);
  if (!version) return std::nullopt;
  DebianPackage package{name, *version, {}};
  std::ifstream in = open_text(database + "info/" + name + ".list");
  for (std::string line; std::getline(in, line);) package.files.push_back(line);
  std::sort(package.files.begin(), package.files.end());
  return package;
}

}  // namespace runtime
