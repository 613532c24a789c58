// An installed Debian package as dpkg's own files describe it: its version and what it put where.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runtime {

struct DebianPackage {
  std::string name, version;
  std::vector<std::string> files;  // absolute, sorted; directories are among them
};

// Reads ROOT/var/lib/dpkg; `root` is "" for this machine. Empty: not installed. Throws
// std::runtime_error when there is no dpkg database, or when it lacks the package's list of files.
std::optional<DebianPackage> find_debian_package(const std::string& root, const std::string& name);

}  // namespace runtime
