#include "runtime/shipped_files.hpp"

#include <filesystem>

namespace runtime {

std::string shipped_config() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path above = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (; !above.empty(); above = above.parent_path()) {
    if (fs::is_directory(above / "config" / "models", error)) return (above / "config").string();
    if (above == above.root_path()) break;
  }
  return {};
}

std::string shipped_model() {
  const std::string config = shipped_config();
  std::error_code error;
  const std::string model = config + "/models/tiny-k3";
  return std::filesystem::is_directory(model, error) ? model : std::string();
}

}  // namespace runtime
