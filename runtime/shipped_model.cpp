#include "runtime/shipped_model.hpp"

#include <filesystem>

namespace runtime {

std::string shipped_model() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path above = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (; !above.empty(); above = above.parent_path()) {
    const fs::path model = above / "config" / "models" / "tiny-k3";
    if (fs::is_directory(model, error)) return model.string();
    if (above == above.root_path()) break;
  }
  return {};
}

}  // namespace runtime
