// A directory of a test's own.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace support {

// Removed with its contents at the end of the test.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& copy_of = {}) {
    static int count = 0;
    const auto name = "sluice-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    path_ = (std::filesystem::temp_directory_path() / name).string();
    std::filesystem::create_directories(path_);
    if (!copy_of.empty())
      std::filesystem::copy(copy_of, path_, std::filesystem::copy_options::recursive);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace support
